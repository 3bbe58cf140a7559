"""Write small files of the newest version of the format, once: python write_version.py v2 [NAME ...].

Without names every kind is written; of a version that changed little the kinds that are new in it will do.
"""

import json
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from small_models import NAMES, all_answers, small_model

    folder = Path(__file__).parent / sys.argv[1]
    folder.mkdir()
    for name in sys.argv[2:] or NAMES:
        model, X = small_model(name)
        model.save(folder / f"{name}.edrvfl")
        answers = {method: values.tolist() for method, values in all_answers(model, X[:6]).items()}
        (folder / f"{name}.json").write_text(json.dumps(answers))
