#!/usr/bin/env bash
# What is released, on a clean Debian 12: in a root of debootstrap with nothing of ours but the .deb and the wheel, every
# example builds and runs, and so do the shell lines and blocks of Python of README.md and docs. Says what each step took
# and, of what is not run, why not. It runs as root, needs debootstrap and a mirror of Debian, and leaves nothing mounted;
# FOLDER/root stays and is used again. With STEPS, an extended regular expression, only steps of such names are done.
# usage: clean_debian.sh DEB WHEEL FOLDER [STEPS]     (packages: ./dev deb; ./dev wheel)
set -euo pipefail
deb=$(realpath "$1") wheel=$(realpath "$2") folder=$3 steps=${4:-} tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
((EUID == 0)) || { echo "clean_debian.sh: it needs root, for chroot" >&2; exit 77; }
[[ -n ${APL_CLEAN_DEBIAN:-} ]] || APL_CLEAN_DEBIAN=1 exec unshare --mount "$0" "$@"  # what is mounted ends with it
mkdir -p "$folder"
root=$(realpath "$folder")/root
if [[ ! -x $root/usr/bin/apt-get || -e $root/debootstrap ]]; then
  rm -rf "$root"
  debootstrap --variant=minbase bookworm "$root" > "$folder/debootstrap.log" || { tail "$folder/debootstrap.log"; exit 1; }
fi
# How this machine reaches packages: it is no part of what is tested.
for path in etc/resolv.conf etc/apt/apt.conf.d etc/ssl/certs/ca-certificates.crt etc/pip.conf; do
  [[ ! -e /$path ]] || { mkdir -p "$root/$(dirname "$path")"; cp -rT "/$path" "$root/$path"; }
done
mount --bind /proc "$root/proc"
mount --bind /dev "$root/dev"
# README and docs with what they speak of, but no source of ours: what is compiled against is what is installed.
rm -rf "$root/apl" "$root/packages"
mkdir -p "$root/apl" "$root/packages"
(cd "$tree" && { git ls-files -z | grep -zvE '[.](cpp|c)$'; git ls-files -z examples; } | sort -zu |
  xargs -0 cp --parents -t "$root/apl")
cp "$deb" "$wheel" "$root/packages"

inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
  OMP_WAIT_POLICY=passive bash -euo pipefail -c "$1"; }
failed=0
step() {  # WHAT COMMAND
  local log start=$SECONDS
  [[ $1 =~ $steps ]] || return 0
  log=$folder/$(tr -c 'A-Za-z0-9\n' - <<< "$1").log
  if inside "$2" > "$log" 2>&1; then
    printf '%-58s %4d s  %s\n' "$1" $((SECONDS - start)) "$(tail -1 "$log" | cut -c1-90)"
  else
    printf '%-58s FAILED (%s)\n' "$1" "$log"
    tail -25 "$log"
    failed=1
  fi
}

# An older try's packages go, so that what the package depends on comes by itself.
step "a root without compilers" 'apt-get -q update; dpkg -P apl-compiler || true
  apt-get -qy purge gcc g++ cmake make "libboost*" || true; apt-get -qy autoremove --purge; ! command -v cc'
step "install the package, and what it depends on" 'apt-get install -qy --no-install-recommends /packages/*.deb; aplc --version | head -1'
step "programs compile and run with that alone" 'cd /apl; aplc test examples/mm0.fut examples/tour; ! command -v g++'
step "library of docs/embedding.md with that alone" 'mkdir -p /tmp/library; cd /tmp/library; ln -sfn /apl/examples examples
  aplc c --library -o mm0 examples/mm0.fut; cc -O3 -fopenmp -I. mm0.c examples/library/main.c -lm -o product; ./product'
step "what the package recommends" 'apt-get install -qy --no-install-recommends \
  $(dpkg-query -W -f "\${Recommends}" apl-compiler | tr -d ,) bash-completion man-db; man -w aplc'
step "manual page, completion" '. /usr/share/bash-completion/bash_completion; . /usr/share/bash-completion/completions/aplc; complete -p aplc'
step "every program of examples, on C" 'cd /apl; aplc test examples'
step "every program of examples, emulated" 'cd /apl; aplc test --backend=emulate examples'
step "the demo" 'cd /apl; bash examples/demo/run.sh /usr/bin/aplc /tmp/demo small'
step "projects of examples by CMake" 'cd /apl/examples; cmake -S . -B /tmp/build -DCMAKE_BUILD_TYPE=Debug && cmake --build /tmp/build -j2 && ctest --test-dir /tmp/build --output-on-failure; tail -6 /tmp/build/Testing/Temporary/LastTest.log | head -1; ctest --test-dir /tmp/build | grep passed'
step "each project alone" 'cd /apl/examples; for file in */CMakeLists.txt; do d=${file%/*}
  cmake -S "$d" -B "/tmp/alone/$d" -DCMAKE_BUILD_TYPE=Debug; done; ls /tmp/alone | wc -l'
step "the C API by pkg-config" 'cc /apl/examples/c-api/main.c $(pkg-config --cflags --libs apl) -o /tmp/c-api; /tmp/c-api'
step "shell lines of README and docs" 'bash /apl/tests/docs_test.sh /usr/bin /apl /tmp/docs installed'
step "install the wheel" 'apt-get install -qy --no-install-recommends python3-venv; python3 -m venv /tmp/venv
  /tmp/venv/bin/pip install -q --disable-pip-version-check /packages/*.whl; cd /tmp; /tmp/venv/bin/python -c "import apl; print(apl.__version__)"'
step "packages that examples in Python speak of" '/tmp/venv/bin/pip install -q --disable-pip-version-check scipy jax jsonschema; /tmp/venv/bin/pip list 2> /dev/null | grep -E "jax |scipy" | tr "\n" " "'
step "blocks of Python of README and docs" 'cd /tmp; venv/bin/python /apl/tests/python/test_docs.py'
step "the notebook" 'cd /tmp; venv/bin/python /apl/tests/python/test_notebook.py'
step "tests of the package" 'cd /tmp; venv/bin/python /apl/tests/python/test_package.py'
step "JAX" 'cd /tmp; venv/bin/python /apl/tests/python/test_jax.py'

if [[ -n ${APL_CLEAN_TORCH:-} ]]; then
  step "examples/torch-op" '/tmp/venv/bin/pip install -q torch; cd /tmp; venv/bin/python /apl/examples/torch-op/main.py'
else
  echo "examples/torch-op: not run (PyTorch is gigabytes; APL_CLEAN_TORCH=1 installs it)"
fi
exit $failed
