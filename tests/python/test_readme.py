"""The Python example of the README, run as it stands but for the model's size."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

README = pathlib.Path(__file__).parents[2] / "README.md"
MODEL = os.environ["COLDSTREAM_TEST_MODEL"]


def test_the_example_in_the_readme_runs(tmp_path):
    example, = re.findall(r"```python\n(import coldstream.*?)```",
                          README.read_text(), re.DOTALL)
    example, changed = re.subn(r'ram="\w+"', 'ram="1G"', example)
    assert changed == 1
    shutil.copy(MODEL, tmp_path / "model.gguf")
    ran = subprocess.run([sys.executable, "-c", example], cwd=tmp_path,
                         capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip()
