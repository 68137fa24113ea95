#!/bin/bash
# make_run.sh TREE FOLDER: packs mxc/memfabric_hybrid of an install tree into
# FOLDER/mxc-memfabric_hybrid-VERSION_linux_ARCH.run, which installs it. Prints that name. The same tree
# gives the same bytes.
set -euo pipefail
tree=$1/mxc/memfabric_hybrid folder=$2
here=$(dirname "$(readlink -f "$0")")

info=("$tree"/[0-9]*/version.info)
[ ${#info[@]} -eq 1 ] && [ -f "${info[0]}" ] || {
  echo "make_run.sh: $tree has not exactly one version" >&2
  exit 1
}
value() { sed -n "s/^$1: *//p" "${info[0]}"; }
version=$(value version) arch=$(value arch)
output=$folder/mxc-memfabric_hybrid-${version}_linux_$arch.run

mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -C "$tree" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-0}" \
  --mode=u+rwX,go+rX,go-w --exclude=./latest -cf - . | gzip -9n >"$work/payload"

# The fourth line has the checksum of everything else.
payload=$(($(wc -l <"$here/header.sh") + 1))
sed "s/@version@/$version/g; s/@arch@/$arch/g; s/@payload@/$payload/g" "$here/header.sh" >"$work/header"
[[ $(sed -n 4p "$work/header") == checksum=@checksum@ ]]
checksum=$({ sed 4d "$work/header"; cat "$work/payload"; } | sha256sum)
sed -i "4s/@checksum@/${checksum%% *}/" "$work/header"
cat "$work/header" "$work/payload" >"$output.new"
chmod 755 "$output.new"
mv "$output.new" "$output"
echo "$output"
