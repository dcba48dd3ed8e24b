#!/bin/sh
# Runs the CUDA compiler as given and keeps what it says about each kernel's registers, spills and shared
# memory beside the object file, for tools/check_kernel_resources.py.
object=
previous=
for word in "$@"; do
  if [ "$previous" = "-o" ]; then object=$word; fi
  previous=$word
done
[ -n "$object" ] || exec "$@"
"$@" >"$object.resources" 2>&1
code=$?
grep -v 'ptxas info\|bytes stack frame\|^$' "$object.resources" >&2
exit $code
