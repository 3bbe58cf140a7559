"""Bring what the page "Answers in a browser" needs into docs/_build/extra/browser: runtime, model, answers.

`python docs/make_browser.py [FOLDER]` fits a portfolio, exports it to ONNX, writes what Python answers for
some rows, and fetches onnxruntime-web by npm, once: a fixed version, checked by the hash that is written
here. Without npm, or without a network, there is no runtime; the site builds all the same, and the page says
what is missing. The runtime is 14 MB and under the MIT licence.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import edrvfl

FOLDER = Path(__file__).parent / "_build" / "extra" / "browser"
PACKAGE, VERSION = "onnxruntime-web", "1.30.0"
INTEGRITY = "q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ=="
RUNTIME = ("ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm")
N_CHECKED = 20  # rows whose answers the page compares with Python's


def make_guests(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Make up guests of a hotel, and whether they return; every ninth age is missing."""
    rng = np.random.default_rng(seed)
    age, nights = rng.integers(18, 80, n).astype(float), rng.integers(1, 15, n).astype(float)
    city, rating = rng.choice(["Lyon", "Oslo", "Rome"], n), rng.integers(1, 6, n).astype(float)
    likely = (
        0.06 * (age - 45) * (city == "Oslo") + 0.25 * (nights - 7) * (city != "Rome") + 0.8 * (rating - 3)
    )
    returns = np.where(likely + rng.logistic(0, 0.6, n) > 0, "yes", "no")
    guests = pd.DataFrame({"age": age, "city": city, "nights": nights, "rating": rating})
    guests.loc[::9, "age"] = np.nan
    return guests, returns


def make_model(folder: Path) -> None:
    """Write a portfolio as guests.onnx, and what Python answers for rows that it has not seen."""
    model = edrvfl.EDRVFLPortfolioClassifier(random_state=0).fit(*make_guests(400, 0))
    (folder / "guests.onnx").write_bytes(edrvfl.to_onnx(model).SerializeToString())
    rows, _ = make_guests(N_CHECKED, 1)
    columns = {name: rows[name].astype(object).where(rows[name].notna(), None).tolist() for name in rows}
    answers = model.predict_proba(rows).tolist()
    said = {"columns": columns, "classes": model.classes_.tolist(), "answers": answers}
    (folder / "guests.json").write_text(json.dumps(said, allow_nan=False))


def fetch_runtime(folder: Path) -> str | None:
    """Fetch the runtime if it is not there; return why that cannot be done, or None."""
    if all((folder / name).exists() for name in RUNTIME):
        return None
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not installed"
    with tempfile.TemporaryDirectory() as packed:
        asked = [npm, "pack", "--silent", f"{PACKAGE}@{VERSION}"]
        ended = subprocess.run(asked, cwd=packed, capture_output=True, text=True)
        if ended.returncode:
            return f"npm says: {ended.stderr.strip().splitlines()[-1:]}"
        (file,) = Path(packed).glob("*.tgz")
        digest = base64.b64encode(hashlib.sha512(file.read_bytes()).digest()).decode()
        if digest != INTEGRITY:
            sys.exit(f"{PACKAGE} {VERSION} has the SHA-512 {digest}, expected {INTEGRITY}. Do not use it.")
        with tarfile.open(file) as archive:
            for name in RUNTIME:
                found = archive.extractfile(f"package/dist/{name}")
                assert found is not None, name
                (folder / name).write_bytes(found.read())
    return None


def main(folder: Path = FOLDER) -> None:
    """Write all files."""
    folder.mkdir(parents=True, exist_ok=True)
    make_model(folder)
    missing = fetch_runtime(folder)
    print(f"{folder}: {'complete' if missing is None else f'without the runtime: {missing}'}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
