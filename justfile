# List the recipes
default:
    @just --list --unsorted

# Install what the tests need (PostgreSQL, Node.js, Chromium); needs root if anything is missing
setup:
    .ci/setup

# Run everything that CI runs, except for installing packages
check:
    .ci/check

# Run the tests
test *args:
    cargo test --workspace --locked {{ args }}

# Run the tests with cargo-nextest, which reports slow and hanging tests (no doctests)
nextest *args:
    cargo nextest run --workspace --locked --profile ci {{ args }}

# Format all crates
fmt:
    cargo fmt --all
    cargo fmt --manifest-path bench/peers/Cargo.toml
    cargo fmt --manifest-path crates/restate/Cargo.toml
    cargo fmt --manifest-path fuzz/Cargo.toml

# Run clippy with warnings denied
lint:
    cargo clippy --workspace --all-targets --locked -- -D warnings
    cargo clippy --manifest-path bench/peers/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}" --all-targets --locked -- -D warnings
    cargo clippy --manifest-path crates/restate/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}" --all-targets --locked -- -D warnings

# Test the worker for Restate, with a real server
test-restate *args:
    cargo test --manifest-path crates/restate/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}" --locked {{ args }}

# Compare the CPU cost of a turn with a hand-written loop (see bench/README.md)
bench *args:
    bench/run {{ args }}

# Build the API documentation and rewrite docs/rules.md
docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --exclude patter-cli --no-deps --locked
    UPDATE_DOCS=1 cargo test -p patter-core --test it --locked rules

# Rewrite the snapshots and list the ones that changed
snapshots *args:
    INSTA_UPDATE=always cargo test --workspace --locked {{ args }}
    git status --short -- '*.snap'

# Fuzz the gram parser (needs cargo-fuzz and a nightly toolchain)
fuzz *args:
    cargo +nightly fuzz run gram {{ args }}

# Check advisories, licences, duplicates and sources of dependencies (needs cargo-deny)
deny:
    cargo deny check

# Build the optimised program, target/dist/patter
dist:
    cargo build --profile dist --locked -p patter-cli
