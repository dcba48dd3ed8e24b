#!/usr/bin/env bash
# Runs coding agents from npm for one tool loop each ("Run echo hi") against scripted_server, in a
# network namespace that has loopback only. Prints one line per agent: PASS or FAIL and its version.
# usage: tools/clients/agent_loops.sh FOLDER [AGENT...]     agents: codex claude opencode cline
# FOLDER holds the installed packages (about 1.5 GB, fetched on the first run) and the logs.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -ge 1 ] || { sed -n '2,5p' "$0"; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
agents=("$@")
[ ${#agents[@]} -gt 0 ] || agents=(codex claude opencode cline)
server="$root/build/dev/tests/clients/scripted_server"
[ -x "$server" ] || { echo "build it first: ninja -C build/dev scripted_server" >&2; exit 2; }

declare -A package=([codex]=@openai/codex [claude]=@anthropic-ai/claude-code [opencode]=opencode-ai [cline]=cline)

install_agent() {
  local at="$folder/$1"
  [ -d "$at/node_modules/${package[$1]}" ] && return
  mkdir -p "$at"
  echo '{"private": true}' > "$at/package.json"
  (cd "$at" && npm install --no-audit --no-fund "${package[$1]}" > install.log 2>&1)
}

version_of() {
  sed -n 's/^ *"version": "\([^"]*\)".*/\1/p' "$folder/$1/node_modules/${package[$1]}/package.json" | head -1
}

# What stands inside the namespace: the server, then the agent with an empty home.
cat > "$folder/inside.sh" <<'INSIDE'
set -euo pipefail
agent=$1 folder=$2 server=$3
ip link set lo up
home="$folder/$agent/home"
rm -rf "$home" && mkdir -p "$home/work"
exec 3< <(sleep 100 | "$server" 8888 2> "$folder/$agent/server.log")
read -r line <&3
cd "$home/work"
bin="$folder/$agent/node_modules"
clean=(env -i PATH="$PATH" HOME="$home" TERM=dumb LANG=C.UTF-8)
url=http://127.0.0.1:8888
case $agent in
  codex)
    mkdir -p "$home/.codex"
    cat > "$home/.codex/config.toml" <<TOML
model = "deepseek-v4-flash"
model_provider = "local"
model_context_window = 1048576
[model_providers.local]
name = "local"
base_url = "$url/v1"
env_key = "LOCAL_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
TOML
    "${clean[@]}" LOCAL_KEY=sk "$bin/.bin/codex" exec --skip-git-repo-check "Run echo hi" < /dev/null ;;
  claude)
    "${clean[@]}" ANTHROPIC_BASE_URL=$url ANTHROPIC_AUTH_TOKEN=sk ANTHROPIC_MODEL=deepseek-v4-flash \
      ANTHROPIC_DEFAULT_HAIKU_MODEL=deepseek-v4-flash CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 \
      DISABLE_AUTOUPDATER=1 "$(ls "$bin"/@anthropic-ai/claude-code-linux-*/claude | head -1)" \
      -p "Run echo hi" --output-format json --allowedTools Bash < /dev/null ;;
  opencode)
    mkdir -p "$home/.config/opencode"
    cat > "$home/.config/opencode/opencode.json" <<JSON
{"autoupdate": false, "provider": {"local": {"npm": "@ai-sdk/openai-compatible", "name": "local",
  "options": {"baseURL": "$url/v1", "apiKey": "sk"}, "models": {"deepseek-v4-flash": {"name": "v4"}}}}}
JSON
    "${clean[@]}" "$(ls "$bin"/opencode-linux-x64*/bin/opencode | head -1)" run \
      --model local/deepseek-v4-flash "Run echo hi" < /dev/null ;;
  cline)
    cline=$(ls "$bin"/@cline/cli-linux-*/bin/cline | head -1)
    "${clean[@]}" "$cline" auth -p openai-compatible -k sk -m deepseek-v4-flash -b "$url/v1" < /dev/null
    "${clean[@]}" "$cline" --json -c "$PWD" "Run echo hi" < /dev/null ;;
esac
INSIDE

failed=0
for agent in "${agents[@]}"; do
  install_agent "$agent"
  log="$folder/$agent/run.log"
  timeout 120 unshare -n bash "$folder/inside.sh" "$agent" "$folder" "$server" > "$log" 2>&1 || true
  # The final answer holds what the command printed, which went there and back through the tools.
  if tr "\n" " " < "$log" | grep -q "The tool returned:.*hi"; then
    echo "PASS $agent $(version_of "$agent")"
  else
    echo "FAIL $agent $(version_of "$agent"), see $log"
    failed=1
  fi
done
exit $failed
