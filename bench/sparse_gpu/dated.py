"""Puts date and device round the cases of apl_sparse_gpu, one case a line.

usage: dated.py CASES.JSON FOLDER [NAME]        # FOLDER/NAME-DEVICE-DATE.json; NAME: sparse
"""
import datetime
import json
import pathlib
import subprocess
import sys


def main():
    cases = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    asked = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                           capture_output=True, text=True, check=False).stdout.strip().partition(", ")
    device, driver = asked[0] or "emulation", asked[2]
    date = datetime.date.today().isoformat()
    label = device.lower().replace("nvidia ", "").replace(" ", "-")
    name = sys.argv[3] if len(sys.argv) > 3 else "sparse"
    target = pathlib.Path(sys.argv[2]) / f"{name}-{label}-{date}.json"
    head = json.dumps({"date": date, "device": f"{device}, driver {driver}", "command": "bench/gpu.sh"})
    lines = ",\n".join("  " + json.dumps(case, sort_keys=True) for case in cases)
    target.write_text(f'{head[:-1]}, "cases": [\n{lines}\n]}}\n', encoding="utf-8")
    print(f"written: {target}")


if __name__ == "__main__":
    main()
