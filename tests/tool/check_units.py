#!/usr/bin/env python3
"""Checks the systemd units: systemd-analyze accepts them (where it is installed), and their command accepts
the options.

    check_units.py PROGRAM SERVICE SOCKET
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

program, service, unit_socket = sys.argv[1:]
text = open(service).read()
command = re.search(r"^ExecStart=(\S+) (.*)$", text, re.M)
options = set(re.findall(r"--[a-z-]+", command.group(2)))
known = set(
    re.findall(
        r"--[a-z-]+",
        subprocess.run([program, "serve", "--help"], check=True, capture_output=True, text=True).stdout,
    )
)
assert options and options <= known, options - known
for option in re.findall(r"--[a-z]+(?:-[a-z]+)+", text):
    assert option in known, option
# Settings for failures, and files that only the owner may read.
for line in "MemoryMax=", "UMask=0077", "StateDirectoryMode=0700", "NoNewPrivileges=yes":
    assert re.search("^" + line, text, re.M), line
if shutil.which("systemd-analyze") is None:
    print("systemd-analyze is not installed: the units were not verified")
    sys.exit(0)
with tempfile.TemporaryDirectory() as directory:
    # The program is where it was built; documentation is not installed.
    for path in service, unit_socket:
        with open(os.path.join(directory, os.path.basename(path)), "w") as file:
            unit = open(path).read().replace(command.group(1), os.path.realpath(program))
            file.write(re.sub(r"^(Documentation|After|Wants)=.*\n", "", unit, flags=re.M))
    units = [os.path.join(directory, os.path.basename(path)) for path in (service, unit_socket)]
    ended = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    # Its output about other units of this machine is ignored.
    ours = [line for line in ended.stdout.splitlines() if "vedette" in line]
    assert not ours, "\n".join(ours)
    ended = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=30", units[0]],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if "unrecognized option" not in ended.stdout:
        assert ended.returncode == 0, ended.stdout
