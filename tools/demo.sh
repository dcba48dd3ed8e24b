#!/usr/bin/env bash
# Starts two ranks with the bundled model, waits until tokens can be generated, streams one chat
# reply, and shuts down. --keep leaves the server up. Called by ./dev demo.
set -euo pipefail
cd "$(dirname "$0")/.."

keep=0
port=8000
question="What is the capital of France?"
while [ $# -gt 0 ]; do
  case "$1" in
    --keep) keep=1 ;;
    --port) port=${2:?--port needs a number}; shift ;;
    --ask) question=${2:?--ask needs a text}; shift ;;
    *) echo "demo: unknown option '$1'; known: --keep, --port N, --ask TEXT" >&2; exit 2 ;;
  esac
  shift
done

tandem=build/release/src/apps/tandem/tandem
url=http://127.0.0.1:$port
log=build/demo.log

"$tandem" serve --model models/nano --tp 2 --port "$port" --max-context-tokens 16384 >"$log" 2>&1 &
server=$!
stop_server() {
  if kill -INT "$server" 2>/dev/null; then
    wait "$server" 2>/dev/null || true
  fi
}
trap stop_server EXIT
trap 'exit 130' INT TERM

printf '==> starting two ranks (log: %s) ' "$log"
for _ in $(seq 1 300); do
  if ! kill -0 "$server" 2>/dev/null; then
    printf '\ndemo: the server ended before it was ready; its last lines:\n' >&2
    tail -n 15 "$log" >&2
    exit 1
  fi
  if curl -fsS -o /dev/null "$url/health" 2>/dev/null; then
    break
  fi
  printf '.'
  sleep 0.2
done
curl -fsS -o /dev/null "$url/health" || { printf '\ndemo: not ready after 60 s; see %s\n' "$log" >&2; exit 1; }
printf ' ready\n==> %s\n' "$question"
"$tandem" chat --url "$url" --once "$question" --max-tokens 200

if [ "$keep" = 1 ]; then
  cat <<TEXT
==> the server stays up at $url (Ctrl-C stops it). In another terminal:
    curl $url/v1/chat/completions -H 'Content-Type: application/json' \\
      -d '{"model":"nano","messages":[{"role":"user","content":"$question"}]}'
    $tandem chat --url $url
TEXT
  wait "$server"
else
  stop_server
  trap - EXIT
  echo "==> stopped cleanly; ./dev demo --keep leaves the server up"
fi
