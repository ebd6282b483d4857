"""Holds JSON files against a schema: validate.py SCHEMA FILE..."""

import json
import sys

import jsonschema

with open(sys.argv[1], encoding="utf-8") as file:
    schema = json.load(file)
jsonschema.Draft202012Validator.check_schema(schema)
failed = 0
for name in sys.argv[2:]:
    with open(name, encoding="utf-8") as file:
        value = json.load(file)
    for error in jsonschema.Draft202012Validator(schema).iter_errors(value):
        failed += 1
        print(f"{name}: {error.json_path}: {error.message}")
sys.exit(1 if failed else 0)
