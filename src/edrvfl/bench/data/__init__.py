"""The datasets of the study: the paper's 24, four that scikit-learn ships, and a user's own table.

`catalogue` lists them, `published` reads and verifies the files of the 24, `fetch` downloads these files,
`own_table` reads a user's CSV file, and `load` brings it together.
"""

from .catalogue import DEMO, GROUPS, UCI24, Published, dataset_names
from .fetch import ARCHIVE_URL, cache_folder, fetch_datasets
from .load import Description, describe_datasets, load_dataset
from .own_table import csv_dataset
from .records import DataError, Dataset, Split

__all__ = [
    "ARCHIVE_URL",
    "DEMO",
    "GROUPS",
    "UCI24",
    "DataError",
    "Dataset",
    "Description",
    "Published",
    "Split",
    "cache_folder",
    "csv_dataset",
    "dataset_names",
    "describe_datasets",
    "fetch_datasets",
    "load_dataset",
]
