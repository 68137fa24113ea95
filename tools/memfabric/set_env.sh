# Source this file, in bash or zsh, to build and run programs with memfabric_hybrid:
#
#   source /usr/local/mxc/memfabric_hybrid/set_env.sh
#
# It sets MEMFABRIC_HYBRID_HOME_PATH to the version that `latest` points to, and lets the loader find
# its library. Doing it twice changes nothing.

_memfabric_here=
if [ -n "${BASH_VERSION:-}" ]; then
  _memfabric_here=${BASH_SOURCE[0]}
elif [ -n "${ZSH_VERSION:-}" ]; then
  eval '_memfabric_here=${(%):-%x}' # other shells could not read that
fi
[ -z "$_memfabric_here" ] ||
  _memfabric_here=$(CDPATH='' cd -- "$(dirname -- "$_memfabric_here")" >/dev/null 2>&1 && pwd -P)

if [ -z "$_memfabric_here" ]; then
  echo "set_env.sh: only bash and zsh tell a sourced file where it is: source it in one of them" >&2
elif [ ! -d "$_memfabric_here/latest/$(uname -m)-linux/lib64" ]; then
  echo "set_env.sh: $_memfabric_here/latest is no memfabric_hybrid for $(uname -m)" >&2
else
  export MEMFABRIC_HYBRID_HOME_PATH=$_memfabric_here/latest
  _memfabric_lib=$MEMFABRIC_HYBRID_HOME_PATH/$(uname -m)-linux/lib64
  case ":${LD_LIBRARY_PATH:-}:" in
    *":$_memfabric_lib:"*) ;;
    *) export LD_LIBRARY_PATH="$_memfabric_lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" ;;
  esac
fi
unset _memfabric_here _memfabric_lib
[ -n "${MEMFABRIC_HYBRID_HOME_PATH:-}" ]
