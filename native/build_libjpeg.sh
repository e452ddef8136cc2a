#!/bin/sh
# Build libjpeg-turbo as a static library: build_libjpeg.sh PREFIX. Needs cmake, a compiler, curl, and on x86-64 nasm.
set -eu
vectors=ON # fail rather than be slow
case $(uname -s)-$(uname -m) in
*x86_64)
  command -v nasm >/dev/null || dnf install -y --enablerepo=powertools nasm || apk add nasm || brew install nasm \
    || choco install -y nasm
  PATH="$PATH:/c/Program Files/NASM" ;;
MINGW*) vectors=OFF ;; # Windows on ARM
esac
version=3.0.4
sum=99130559e7d62e8d695f2c0eaeef912c5828d5b84a0537dcb24c9678c9d5b76b
mkdir -p "$1"
prefix=$(cd "$1" && { pwd -W 2>/dev/null || pwd; }) # -W: as Windows names it
work=$(mktemp -d)
cd "$work"
curl -fsSL -o source.tar.gz \
  "https://github.com/libjpeg-turbo/libjpeg-turbo/releases/download/$version/libjpeg-turbo-$version.tar.gz"
echo "$sum  source.tar.gz" | (sha256sum -c - 2>/dev/null || shasum -a 256 -c -)
tar xzf source.tar.gz
cmake -S "libjpeg-turbo-$version" -B build -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix" \
  -DCMAKE_INSTALL_LIBDIR=lib -DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF -DREQUIRE_SIMD=$vectors \
  -DCMAKE_POSITION_INDEPENDENT_CODE=ON
cmake --build build --config Release --target install
