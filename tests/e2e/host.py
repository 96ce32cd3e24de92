# SPDX-License-Identifier: Apache-2.0
"""What cuvette could leave on the host, looked at from outside.

Other people may run sandboxes on the same machine meanwhile.  A slot whose byte in
/run/cuvette/slots is locked has a living holder and is theirs to clean; what remains with
nobody holding the slot is a leftover, and so is every process that carries our tag.  While
strangers are about, slots without a holder may be theirs and are not held against us.
"""
import fcntl
import glob
import os
import re
import struct
import time

from cli import TAG

SLOTS = '/run/cuvette/slots'
UID_BASE, UID_RANGE, SLOT_COUNT = 0x10000000, 65536, 8192


def slot_is_held(n):
    if not os.path.exists(SLOTS):
        return False
    flock = struct.Struct('hhqqi4x')
    with open(SLOTS, 'rb') as f:
        answer = fcntl.fcntl(f, fcntl.F_OFD_GETLK, flock.pack(fcntl.F_WRLCK, os.SEEK_SET, n, 1, 0))
    return flock.unpack(answer)[0] != fcntl.F_UNLCK


def cgroup_roots():
    roots = []
    with open('/proc/self/mountinfo', encoding='utf-8') as lines:
        for line in lines:
            fields = line.split()
            if fields[fields.index('-') + 1] in ('cgroup', 'cgroup2'):
                roots.append(fields[4])
    return roots


def cgroups():
    """{slot: [directories]} of every cgroup that is named like one of a sandbox."""
    found = {}
    for root in cgroup_roots():
        for path, dirs, _ in os.walk(root):
            for name in [d for d in dirs if re.fullmatch(r'cuvette\.\d+', d)]:
                dirs.remove(name)
                found.setdefault(int(name.split('.')[1]), []).append(os.path.join(path, name))
    return found


def read(path):
    try:
        with open(path, 'rb') as f:
            return f.read()
    except OSError:
        return b''


def processes():
    """(pid, uid, command line, is tagged) of every process that is alive."""
    for entry in os.listdir('/proc'):
        if not entry.isdigit():
            continue
        status = read(f'/proc/{entry}/status').decode(errors='replace')
        if not status or '\nState:\tZ' in status:
            continue
        uid = int(re.search(r'^Uid:\t(\d+)', status, re.M).group(1))
        tagged = TAG.encode() in read(f'/proc/{entry}/environ').split(b'\0')
        yield int(entry), uid, read(f'/proc/{entry}/cmdline'), tagged


def slot_of_uid(uid):
    n = (uid - UID_BASE) // UID_RANGE
    return n if 0 <= n < SLOT_COUNT else None


def strangers():
    """Pids of programs of cuvette, its tests and benchmarks that no test of ours has started."""
    return {pid for pid, uid, cmdline, tagged in processes() if not tagged and slot_of_uid(uid) is None and
            os.path.basename(cmdline.split(b'\0')[0]).startswith((b'cuvette-spawner', b'test-', b'bench-'))}


def our_processes(alone=True):
    """Tagged ones, and those in an id range that nobody has leased."""
    ours = []
    for pid, uid, cmdline, tagged in processes():
        slot = slot_of_uid(uid)
        if pid != os.getpid() and (tagged or (alone and slot is not None and not slot_is_held(slot))):
            ours.append(f'{pid} {cmdline.replace(bytes(1), b" ").decode(errors="replace")}')
    return ours


def spawners():
    """Pids of the spawners that our command lines have started."""
    return [pid for pid, _, cmdline, tagged in processes() if tagged and cmdline.split(b'\0')[0].endswith(b'cuvette-spawner')]


def mounts():
    with open('/proc/self/mountinfo', encoding='utf-8') as lines:
        return {line.split(' ', 2)[2] for line in lines}


def loop_devices():
    """{device: backing file} of those that are set up on a file of a data directory."""
    found = {}
    for path in glob.glob('/sys/block/loop*/loop/backing_file'):
        found[path.split('/')[3]] = read(path).decode(errors='replace').strip()
    return found


def net_namespaces():
    """How many the kernel holds, whoever does; exact to a handful (the rest of a slab page)."""
    for line in read('/proc/slabinfo').decode().splitlines():
        if line.startswith('net_namespace '):
            return int(line.split()[1])
    return None


def snapshot():
    return {'mounts': mounts(), 'run': set(os.listdir('/run/cuvette')) if os.path.isdir('/run/cuvette') else set(), 'strangers': strangers()}


def leftovers(before, data=None):
    """One sentence for each thing that should not be there."""
    alone = not before['strangers'] and not strangers()
    left = [f'process {p}' for p in our_processes(alone)]
    left += [f'cgroup {d}' for n, dirs in cgroups().items() if alone and not slot_is_held(n) for d in dirs]
    left += [f'mount {m}' for m in mounts() - before['mounts'] if 'cuvette' in m]
    left += [f'/run/cuvette/{n}' for n in snapshot()['run'] - before['run'] - {'slots'}]
    if data:
        left += [f'loop device {d} on {f}' for d, f in loop_devices().items() if f.startswith(data)]
        disks = os.path.join(data, 'disks')
        left += [f'disk {n}' for n in (os.listdir(disks) if os.path.isdir(disks) else ()) if not n.startswith('blank-')]
    return left


def assert_clean(before, data=None, seconds=3):
    """Ends of processes are asynchronous by nature; more than a moment they must not take."""
    deadline = time.monotonic() + seconds
    while leftovers(before, data) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not leftovers(before, data)
