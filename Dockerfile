# An image that serves the agents of a folder:
#
#     docker build -t patter .
#     docker run -p 8484:8484 -v ./agents:/agents -e PATTER_SERVE_TOKEN -e OPENAI_API_KEY patter
#
# Sessions are stored in the volume /data. The folder of the agents may be read-only.
FROM rust:1.95-slim-bookworm AS build
WORKDIR /source
COPY . .
RUN cargo build --locked --profile dist -p patter-cli

FROM debian:bookworm-slim
RUN useradd --system --create-home --home-dir /home/patter patter \
    && install -d -o patter -g patter /agents /data
COPY --from=build /source/target/dist/patter /usr/local/bin/patter
USER patter
WORKDIR /agents
VOLUME /data
EXPOSE 8484
STOPSIGNAL SIGTERM
# The image has no HTTP client, but its shell can connect.
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["bash", "-c", \
    "exec 3<>/dev/tcp/127.0.0.1/8484 && printf 'GET /readyz HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n' >&3 && grep -q ' 200 ' <&3"]
ENTRYPOINT ["patter"]
CMD ["serve", ".", "--listen", "0.0.0.0:8484", "--store", "/data/sessions.db", "--trust"]
