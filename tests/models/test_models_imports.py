"""What is not used is not loaded: the room stays light until a text is embedded."""

import subprocess
import sys

import pytest

HEAVY = {"numpy", "onnxruntime", "tokenizers", "safetensors", "torch", "rich", "huggingface_hub"}


def loaded_after(code):
    script = f"import sys\n{code}\nprint(' '.join(m for m in {sorted(HEAVY)} if m in sys.modules))"
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(said.stdout.splitlines()[-1].split())


def test_nothing_that_speaks_http_is_loaded_before_a_download():
    code = "import sys, ragvault.models.load; print(*({'http.client', 'ssl'} & set(sys.modules)))"
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, capture_output=True, text=True, check=True)

    assert said.stdout.strip() == ""


def test_a_model_that_is_installed_is_opened_without_the_code_that_installs(tmp_path):
    code = f"""
import sys
from pathlib import Path
from ragvault.models import load, registry
(build, *_) = registry.find_model("bge-small-en-v1.5")[1]
models = Path({str(tmp_path)!r})
registry.build_folder(build, models).mkdir(parents=True)
load.open_embedder("bge-small-en-v1.5", load.LoadOptions(models))
print("ragvault.models.install" in sys.modules, "subprocess" in sys.modules)
"""
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, capture_output=True, text=True, check=True)

    assert said.stdout.split() == ["False", "False"]


@pytest.mark.parametrize(
    "code",
    [
        "import ragvault",
        "from ragvault.models import load, install, registry",
        "from ragvault.models import onnx, static, sentence_transformers, fake",
        "from ragvault.models import registry; registry.find_model('bge-small-en-v1.5')",
        "from ragvault.cli.main import main; main(['models', '--help'])",
        "from ragvault.cli.main import main; main(['models', 'list'])",
    ],
)
def test_no_heavy_library_is_loaded_by(code):
    assert loaded_after(code) == set()
