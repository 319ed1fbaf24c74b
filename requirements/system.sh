#!/bin/sh
# Installs packages of the system that some tests need, and only where that disturbs nobody: as root in a container, or
# where CI=true. Anywhere else, and where it fails, those tests are skipped and say what to install.
#
#     sh requirements/system.sh package=program[,program...] ...
#
# A package is there if one of its programs starts; one that is found and does not start is no program. A program may be
# a pattern, such as /usr/lib/postgresql/*/bin/initdb, which is on nobody's path.

in_container() {
  [ -n "$container" ] || [ -e /.dockerenv ] || [ -e /run/.containerenv ] ||
    grep -qsE "docker|containerd|kubepods|libpod|lxc" /proc/1/cgroup
}

starts() {
  if command -v timeout >/dev/null; then timeout 60 "$1" --version; else "$1" --version; fi >/dev/null 2>&1
}

missing=""
for pair in "$@"; do
  present=no
  for program in $(echo "${pair#*=}" | tr , " "); do
    if starts "$program"; then present=yes; fi
  done
  if [ "$present" = no ]; then missing="$missing ${pair%%=*}"; fi
done
if [ -z "$missing" ]; then exit 0; fi

if [ "$(id -u)" = 0 ]; then as=""; else as="sudo -n"; fi
if [ "$CI" != true ] && ! { [ -z "$as" ] && in_container; }; then
  echo "Not installed:$missing. Tests that need it are skipped; it is installed only in a container or with CI=true."
elif ! command -v apt-get >/dev/null; then
  echo "Not installed:$missing. There is no apt-get here; tests that need it are skipped."
else
  # The tests start a server of their own; that of the package is neither made nor started.
  cluster="mkdir -p /etc/postgresql-common && { test -e /etc/postgresql-common/createcluster.conf ||"
  cluster="$cluster echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf; }"
  case "$missing" in *postgresql*) $as sh -c "$cluster" || true ;; esac
  install="DEBIAN_FRONTEND=noninteractive apt-get install -yqq --no-install-recommends$missing"
  echo "Installing$missing"
  if ! $as timeout 300 sh -c "$install || { apt-get update -qq && $install; }" >/dev/null 2>&1; then
    echo "Not installed:$missing. apt-get failed; tests that need it are skipped."
  fi
fi
exit 0
