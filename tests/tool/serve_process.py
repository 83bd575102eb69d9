"""A process of `vedette serve` for a test, and requests to it."""

import json
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from waiting import GUARD  # noqa: E402


class ServeProcess:
    """Started when the constructor returns; the test calls kill. The process never blocks on a full pipe."""

    def __init__(self, program, *arguments, listen="127.0.0.1:0"):
        self.process = subprocess.Popen(
            [program, "serve", "--listen", listen, *arguments], stderr=subprocess.PIPE, text=True
        )
        output = ""
        for line in self.process.stderr:
            output += line
            if line.startswith("vedette: ready"):
                self.url = line.split()[2]
                break
        else:
            raise RuntimeError("the server did not start: " + output)
        self.reader = threading.Thread(target=self.drain, daemon=True)
        self.reader.start()

    def drain(self):
        for _ in self.process.stderr:
            pass

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stderr.close()

    def request(self, method, path, body=None, content="application/json"):
        """Returns the status and the answer; None instead of the answer of an error."""
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(
            self.url + path, data=data, method=method, headers={"Content-Type": content}
        )
        try:
            with urllib.request.urlopen(request, timeout=GUARD) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, None
