"""The datasets of the study: the paper's 24, four that scikit-learn ships, a user's own table, real frames.

`catalogue` lists them, `published` reads and verifies the files of the 24, `fetch` downloads these files,
`own_table` reads a user's CSV file, and `load` brings it together. `frames` has the mixed frames apart: they
keep their categories and gaps, and are not searched. The `task` of a dataset is classification or
regression.
"""

from .catalogue import DEMO, GROUPS, UCI24, Published, dataset_names
from .fetch import ARCHIVE_URL, cache_folder, fetch_datasets
from .frames import ADDED, ALL_FRAMES, CONFIRMATION, FRAME_GROUPS, FRAMES, VALUES, load_frame
from .load import Description, describe_datasets, load_dataset
from .own_table import csv_dataset
from .records import DataError, Dataset, Frame, Split, Task

__all__ = [
    "ADDED",
    "ALL_FRAMES",
    "ARCHIVE_URL",
    "CONFIRMATION",
    "DEMO",
    "FRAMES",
    "FRAME_GROUPS",
    "GROUPS",
    "UCI24",
    "VALUES",
    "DataError",
    "Dataset",
    "Description",
    "Frame",
    "Published",
    "Split",
    "Task",
    "cache_folder",
    "csv_dataset",
    "dataset_names",
    "describe_datasets",
    "fetch_datasets",
    "load_dataset",
    "load_frame",
]
