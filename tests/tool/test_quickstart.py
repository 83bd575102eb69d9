#!/usr/bin/env python3
"""tools/quickstart: from any directory, twice, and with --stay until Ctrl-C. VEDETTE names a program that is
built already.

    test_quickstart.py SCRIPT
"""

import glob
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.request

SCRIPT = sys.argv[1]


class QuickstartTest(unittest.TestCase):
    def test_it_runs_twice_from_anywhere_and_leaves_nothing(self):
        for _ in range(2):
            with tempfile.TemporaryDirectory() as folder:
                result = subprocess.run(
                    [SCRIPT],
                    cwd=folder,
                    env=self.environment(folder),
                    capture_output=True,
                    text=True,
                    timeout=300,
                )
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                for expected in (
                    r"-> ADDED +pod/hello",
                    r"-> MODIFIED pod/hello",
                    r"-> DELETED +pod/hello",
                    r'"color": "blue"',
                    "kubectl",
                ):
                    self.assertRegex(result.stdout, expected)
                self.assertNotIn("Killed", result.stderr)
                self.assertEqual(glob.glob(folder + "/*"), [])

    def test_stay_serves_until_interrupted(self):
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen(
                [SCRIPT, "--stay"],
                cwd="/",
                env=self.environment(folder),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            url = None
            said = ""
            for line in process.stdout:
                said += line
                match = re.search(r"Serving at (\S+) until", line)
                if match:
                    url = match.group(1)
                    break
            self.assertIsNotNone(url, said)
            self.assertEqual(urllib.request.urlopen(url + "/readyz").status, 200)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(60), 0)
            process.stdout.close()
            self.assertRaises(OSError, urllib.request.urlopen, url + "/readyz")
            self.assertEqual(glob.glob(folder + "/*"), [])

    def test_mistakes(self):
        result = subprocess.run([SCRIPT, "--frob"], capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout), (2, ""))

    def environment(self, folder):
        import os

        return dict(os.environ, TMPDIR=folder)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
