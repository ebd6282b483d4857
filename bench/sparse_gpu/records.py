"""What apl_sparse_gpu records, for those who print tables of it."""
import json
import math


def cases_of(files, wanted=lambda case: True):
    """The wanted cases of all files, which are lists of them, or have a list with a date and a device round it."""
    cases = []
    for file in files:
        with open(file, encoding="utf-8") as text:
            read = json.load(text)
        cases += filter(wanted, read["cases"] if isinstance(read, dict) else read)
    return cases


def geomean(numbers):
    return math.exp(sum(map(math.log, numbers)) / len(numbers)) if numbers else math.nan
