#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every #include between folders of src/ is one of the permitted edges.

To change the architecture, change the table, where a reviewer looks first.
"""
import os
import re
import sys

# folder -> what it may include: a folder, or a single header of one
MAY_USE = {
    'base': [],
    'wire': ['base'],
    'engine': ['base'],
    'spawner': ['engine', 'wire', 'base'],
    'init': ['wire', 'base'],
    'sandbox': ['wire', 'base'],
    'template': ['base'],
    'cli': ['sandbox', 'template', 'wire', 'engine/features.h', 'base'],
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def folder_of(header, own):
    """The folder an include means; a bare name is a header of the same folder."""
    return header.split('/')[0] if '/' in header else own


def permitted(own, header):
    other = folder_of(header, own)
    return other == own or other in MAY_USE[own] or header in MAY_USE[own]


def complaints(src):
    for own in sorted(os.listdir(src)):
        if not os.path.isdir(os.path.join(src, own)):
            continue
        if own not in MAY_USE:
            yield f'src/{own}: not in the table of tools/check-layers.py'
            continue
        for folder, _, names in os.walk(os.path.join(src, own)):
            for name in sorted(n for n in names if n.endswith(('.c', '.h'))):
                yield from check_file(os.path.join(folder, name), src, own)


def check_file(path, src, own):
    with open(path, encoding='ascii', errors='replace') as lines:
        for number, line in enumerate(lines, 1):
            found = INCLUDE.match(line)
            if found and not permitted(own, found[1]):
                shown = os.path.relpath(path, os.path.dirname(src))
                yield f'{shown}:{number}: {own} may not use {found[1]}'


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), '..')
    found = list(complaints(os.path.join(root, 'src')))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
