"""What is installed: types, and the notebook of the documentation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

import forebay

DOCS = Path(__file__).parents[2] / "docs"


def test_the_types_hold(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import forebay\n"
        "fb = forebay.connect()\n"
        "size: int = fb.stat('/lake/x').size\n"
        "view: memoryview = fb.read('/lake/x', 0, 10)\n"
        "value: memoryview = fb.nodes.get('/tmp/x')\n"
        "names: list[str] = fb.sql('select 1').columns\n"
        "wrong: int = fb.address\n"
    )
    errors = mypy(tmp_path, str(program))
    assert len(errors) == 1 and "program.py:7" in errors[0], errors
    assert mypy(tmp_path, "-p", "forebay") == []


def mypy(folder: Path, *arguments: str) -> list[str]:
    command = [sys.executable, "-m", "mypy", "--ignore-missing-imports", "--strict", "--allow-subclassing-any", "--cache-dir", str(folder), *arguments]
    checked = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert checked.returncode in (0, 1), checked.stdout + checked.stderr
    return [line for line in checked.stdout.splitlines() if ": error:" in line]


def test_everything_public_says_what_it_is():
    for name in forebay.__all__:
        thing = getattr(forebay, name)
        assert name == "__version__" or thing.__doc__, name
    for of in (forebay.Client, forebay.aio.AsyncClient, forebay.Result, forebay.Mounts, forebay.Nodes, forebay.nodes.AsyncNodes, forebay.Table):
        for name, member in vars(of).items():
            assert name.startswith("_") or member.__doc__, f"{of.__name__}.{name}"


def test_the_notebook_runs(tmp_path):
    notebook = nbformat.read(DOCS / "notebook.ipynb", as_version=4)
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [str(output) for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not any(output.startswith("{'output_type': 'error'") for output in outputs)
    assert any("336" in output for output in outputs), outputs
