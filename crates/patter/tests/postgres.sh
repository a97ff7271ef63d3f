set -u
bin=$(ls -d /usr/lib/postgresql/*/bin /usr/local/pgsql/bin 2>/dev/null | sort -V | tail -n 1)
[ -n "$bin" ] || { echo "it is not installed: apt-get install postgresql"; exit 1; }
# PostgreSQL refuses to run as root.
as=
[ "$(id -u)" != 0 ] || as="setpriv --reuid=postgres --regid=postgres --clear-groups"
cd /
folder=$($as mktemp -d /tmp/patter-postgres.XXXXXX) || { echo "cannot create a folder for it"; exit 1; }
trap '' INT TERM HUP
$as "$bin/initdb" -D "$folder/data" -U postgres -A trust -E UTF8 --no-sync >"$folder/log" 2>&1
echo "local all guarded scram-sha-256
local all all trust" >"$folder/hba"
$as "$bin/postgres" -D "$folder/data" -k "$folder" -h '' -c hba_file="$folder/hba" -c fsync="${FSYNC:-off}" -c full_page_writes="${FSYNC:-off}" \
  -c max_connections=200 -c shared_buffers=32MB >>"$folder/log" 2>&1 &
server=$!
tries=0
until "$bin/pg_isready" -q -h "$folder" || [ $tries = 300 ]; do tries=$((tries + 1)); sleep 0.1; done
# A pooler that assigns a connection per transaction, on port 6432.
bouncer=$(command -v pgbouncer || ls /usr/sbin/pgbouncer 2>/dev/null)
if [ -n "$bouncer" ] && [ $tries != 300 ]; then
  $as sh -c 'printf "[databases]\n* = host=%s port=5432 user=postgres\n[pgbouncer]\nunix_socket_dir = %s\nlisten_port = 6432\n" "$1" "$1"
    printf "auth_type = any\npool_mode = transaction\ndefault_pool_size = 4\nmax_client_conn = 500\nserver_lifetime = 60\nserver_idle_timeout = 2\n"' sh "$folder" >"$folder/pgbouncer.ini"
  $as "$bouncer" -q "$folder/pgbouncer.ini" >>"$folder/log" 2>&1 &
  pooler=$!
  tries=0
  until [ -S "$folder/.s.PGSQL.6432" ] || [ $tries = 100 ]; do tries=$((tries + 1)); sleep 0.1; done
  tries=0
fi
if [ $tries = 300 ]; then echo "it does not start: $(tail -n 3 "$folder/log" | tr '\n' ' ')"; else echo "folder $folder"; cat >/dev/null; fi
[ -z "${pooler:-}" ] || { kill -TERM $pooler; wait $pooler; } 2>/dev/null
kill -INT $server 2>/dev/null
wait $server
rm -rf "$folder"
