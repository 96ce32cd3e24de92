#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The recipe of `cuvette template build`: a Debian root filesystem as a tar on stdout.
#
# cuvette-template runs this with a clean environment, no input, and /tmp being a
# directory of its own; arguments are the suite and the packages to add.  /tmp/sources
# has the archive's lines for apt.  Progress goes to stderr as lines "I: ...".
set -eu
suite=$1
extra=$2

packages=ca-certificates,bash,coreutils,curl,file,git,jq,less,procps,unzip,xz-utils,nodejs
packages=$packages,python3,python3-pip,python3-ipython,python3-numpy,python3-pandas,python3-matplotlib

# NumPy on the reference BLAS is 10 to 50 times slower at matrices.  The serial OpenBLAS,
# because the threaded one starts a thread per CPU of the machine at every import,
# whatever the sandbox's share of it and its limit of processes.
packages=$packages,libopenblas0-serial

# scipy (a dependency of matplotlib's font tools) wants its compiler installed, which
# brings GCC, Boost and headers: half a gigabyte that nothing uses at run time.  An empty
# package provides those names; `--packages python3-pythran` still installs the real one.
stand_in() {
	mkdir -p "$1/DEBIAN"
	cat > "$1/DEBIAN/control" <<-END
	Package: cuvette-stand-in
	Version: 1
	Architecture: all
	Maintainer: cuvette <root@localhost>
	Provides: python3-pythran (= 99), unicode-data (= 99), python3-pil.imagetk (= 99), libjs-jquery (= 99), libjs-jquery-ui (= 99)
	Description: stands in for packages that nothing uses at run time
	END
	dpkg-deb -Znone --root-owner-group --build "$1" "$1.deb" >&2
	{
		cat "$1/DEBIAN/control"
		echo "Filename: ./${1##*/}.deb"
		echo "Size: $(stat -c %s "$1.deb")"
		echo "SHA256: $(sha256sum "$1.deb" | cut -d' ' -f1)"
	} > "${1%/*}/Packages"
}

mkdir /tmp/repo
stand_in /tmp/repo/cuvette-stand-in
{ echo 'deb [trusted=yes] copy:/tmp/repo ./'; cat /tmp/sources; } > /tmp/all-sources

# What the finished tree still needs or should not carry; $1 is its root.
cat > /tmp/customize <<'END'
set -eu
root=$1
# apt inside shall know the archive, and not the stand-in's folder.
rm -f "$root"/etc/apt/sources.list.d/*
cp /tmp/sources "$root/etc/apt/sources.list"
chroot "$root" useradd -m -U -u 1000 -s /bin/bash user
# Imports half of importlib at every start, for a namespace package that has an __init__.py by now.
rm -f "$root"/usr/lib/python3/dist-packages/matplotlib-*-nspkg.pth
# Test suites are a seventh of the Python packages.  Not by path-exclude: py3compile
# fails on files that the package lists and dpkg did not unpack.
find "$root/usr/lib/python3/dist-packages" -type d -name tests -prune -exec rm -rf {} +
# matplotlib looks for fonts at its first import, for seconds, unless it finds this list; sorted,
# because the order of a directory would make every build another template.
cat > "$root/tmp/fonts.py" <<'PY'
import os, matplotlib, matplotlib.font_manager as fonts
known = fonts.fontManager
known.ttflist.sort(key=lambda font: (font.fname, font.name))
known.afmlist.sort(key=lambda font: (font.fname, font.name))
fonts.json_dump(known, os.path.join(matplotlib.get_cachedir(), f'fontlist-v{known.__version__}.json'))
PY
for user in user root; do
	home=$(chroot "$root" getent passwd $user | cut -d: -f6)
	chroot "$root" runuser -u $user -- env -i HOME="$home" PATH=/usr/bin:/bin LANG=C.UTF-8 python3 /tmp/fonts.py >&2
done
rm "$root/tmp/fonts.py"
# The day of a password's last change would make every day's build another template.
sed -i 's/^\([^:]*:[^:]*\):[0-9]*:/\1:19000:/' "$root/etc/shadow"
rm -rf "$root"/var/log/*.log "$root"/var/log/apt "$root"/var/cache/ldconfig/aux-cache \
	"$root"/var/cache/debconf/*-old "$root"/var/lib/dpkg/*-old "$root"/etc/*-
END

exec mmdebstrap --mode=root --format=tar --variant=minbase \
	--aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Languages "none"' \
	--dpkgopt=force-unsafe-io \
	--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/info/*' \
	--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
	--dpkgopt='path-exclude=/usr/share/locale/*' \
	--customize-hook='sh /tmp/customize "$1"' \
	--include="cuvette-stand-in,$packages${extra:+,$extra}" \
	"$suite" - /tmp/all-sources
