#!/bin/sh
# Vendors this module's dependencies from Debian's packages of Go libraries, after `buf generate`. Then it builds and runs
# without a network: go run -mod=vendor -modfile=gen/debian.mod .
set -eu
cd "$(dirname "$0")"
sources=/usr/share/gocode/src
modules=$(cd "$sources" && find . -name go.mod | sed 's|^\./||; s|/go\.mod$||')

{
  cat go.mod
  for module in $modules; do
    echo "require $module v0.0.0"
    echo "replace $module => $sources/$module"
  done
} >gen/debian.mod

# Their own go.mod files name modules that Debian does not have, so an overlay empties them.
separator='{"Replace": {'
for module in $modules; do
  empty=gen/$(echo "$module" | tr / _).mod
  printf 'module %s\n\ngo 1.19\n' "$module" >"$empty"
  printf '%s"%s": "%s"' "$separator" "$sources/$module/go.mod" "$PWD/$empty"
  separator=', '
done >gen/overlay.json
echo '}}' >>gen/overlay.json

GOPROXY=off go mod vendor -modfile=gen/debian.mod -overlay=gen/overlay.json
