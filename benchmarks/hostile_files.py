"""Change model files in many ways and load them: each is refused, or gives a model that answers.

    python benchmarks/hostile_files.py [--small] 100000

A file whose checksum was made right again may hold another model than before ("different"): whoever can write
a checksum can write a model. What must not happen is another error than ValueError, a model that fails, or a
changed file that loads although its checksum was not made right.
"""

import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from common import SMALL

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from hostile import hostile, outcome
from small_models import NAMES, all_answers, small_model

from edrvfl._leaving.files.models import packed_model


def main(n_cases, seed=0):
    warnings.simplefilter("ignore")
    models = []
    for name in NAMES:
        model, X = small_model(name)
        models.append((packed_model(model), X[:8], all_answers(model, X[:8])))
    rng, counts, escaped = np.random.default_rng(seed), Counter(), []
    began, slowest = time.perf_counter(), 0.0
    for case in range(n_cases):
        place = case % len(models)
        content, X, expected = models[place]
        kind, changed = hostile(content, rng)
        start = time.perf_counter()
        found = outcome(changed, lambda model, X=X: all_answers(model, X), expected)
        slowest = max(slowest, time.perf_counter() - start)
        if kind == "flip" and changed != content and found != "refused":
            found = f"a file with a wrong checksum was {found}"
        if found not in ("refused", "equal", "different"):
            escaped.append((case, NAMES[place], kind, found[:300]))
            found = "escaped"
        counts[kind, found] += 1
    columns = ("refused", "equal", "different", "escaped")
    print(f"{'change':12s}" + "".join(f"{name:>11s}" for name in columns))
    for kind in sorted({kind for kind, _ in counts}):
        print(f"{kind:12s}" + "".join(f"{counts[kind, name]:11d}" for name in columns))
    total = {name: sum(n for (_, found), n in counts.items() if found == name) for name in columns}
    print(f"{'all':12s}" + "".join(f"{total[name]:11d}" for name in columns))
    print(f"{n_cases} cases in {time.perf_counter() - began:.0f} s, the slowest {1000 * slowest:.0f} ms")
    for line in escaped[:20]:
        print("ESCAPED", *line)
    return len(escaped)


if __name__ == "__main__":
    sys.exit(min(1, main(*map(int, sys.argv[1:3] or [60 if SMALL else 100_000]))))
