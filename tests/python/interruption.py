"""A program with an engine that Ctrl-C reaches in the middle of a call."""

import os
import signal
import subprocess
import sys
import textwrap
import time

MODEL = os.environ["COLDSTREAM_TEST_MODEL"]


def assert_ctrl_c_ends(call, *, setup="", wait, within):
    """`call` is on `engine`, after `setup`, and takes minutes.

    wait: seconds after which the program is stopped; within: those it may take
    to end by itself.
    """
    program = (
        "import coldstream, sys\n"
        f"engine = coldstream.Engine({MODEL!r}, ram='1G', device='cpu',\n"
        "                           context=20000, max_sequences=1)\n"
        f"{setup}\n"
        "print('ready', flush=True)\n"
        "try:\n"
        f"{textwrap.indent(call, '    ')}\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
        "    engine.close()\n"
        "    sys.exit(130)\n")
    child = subprocess.Popen([sys.executable, "-c", program],
                             stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.5)
    begin = time.monotonic()
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=wait)
    assert (child.returncode, out) == (130, "interrupted\n")
    assert time.monotonic() - begin < within
