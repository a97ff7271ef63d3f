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
$as "$bin/postgres" -D "$folder/data" -k "$folder" -h '' -c hba_file="$folder/hba" -c fsync=off -c full_page_writes=off \
  -c max_connections=200 -c shared_buffers=32MB >>"$folder/log" 2>&1 &
server=$!
tries=0
until "$bin/pg_isready" -q -h "$folder" || [ $tries = 300 ]; do tries=$((tries + 1)); sleep 0.1; done
if [ $tries = 300 ]; then echo "it does not start: $(tail -n 3 "$folder/log" | tr '\n' ' ')"; else echo "folder $folder"; cat >/dev/null; fi
kill -INT $server 2>/dev/null
wait $server
rm -rf "$folder"
