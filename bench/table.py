"""Joins apl.json and peers.json of a folder into one dated result file and prints the table.

usage: table.py FOLDER
"""
import datetime
import json
import pathlib
import sys

import results_file


def main():
    folder = pathlib.Path(sys.argv[1])
    ours = json.loads((folder / "apl.json").read_text(encoding="utf-8"))
    peers_file = folder / "peers.json"
    peers = json.loads(peers_file.read_text(encoding="utf-8")) if peers_file.exists() else {}
    device = peers.pop("device", "unknown device")
    version = peers.pop("torch", None)
    # Research code is not run again: its recorded figures, which count if cuBLAS is as fast as it was then.
    recorded = json.loads((pathlib.Path(__file__).parent / "research_peers.json").read_text(encoding="utf-8"))
    research = recorded["cases"] if "H200" in device else {}
    print(f"{'case':<12} {'apl ms':>9} {'GFLOP/s':>9} {'cuBLAS ms':>10} {'einsum ms':>10} {'of cuBLAS':>10} {'of einsum':>10} "
          f"{'of research code, recorded':>27}")

    def of_research(name, mine):
        best = max(research.get(name, {}).values(), default=0)
        return f"{mine['gflops'] / best:.2f}" if best else "-"

    for name, mine in ours.items():
        if "error" in mine:
            print(f"{name:<12} {mine['error']}")
            continue
        time = mine["microseconds"]
        peer = peers.get(name, {})

        def ratio(key):
            return f"{peer[key] / time:.2f}" if peer.get(key) else "-"

        def show(key):
            return f"{peer[key] / 1000:.3f}" if peer.get(key) else "-"

        print(f"{name:<12} {time / 1000:>9.3f} {mine['gflops']:>9.0f} {show('cublas'):>10} {show('einsum'):>10} "
              f"{ratio('cublas'):>10} {ratio('einsum'):>10} {of_research(name, mine):>27}")

    def others(name):
        file = folder / name
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}

    date = datetime.date.today().isoformat()
    label = device.lower().replace("nvidia ", "").replace(" ", "-")
    result = {"date": date, "device": device, "torch": version, "apl": ours, "peers": peers,
              "research_peers": recorded if research else {}, "ablation": others("ablation.json"),
              "variants": others("variants.json"), "bank_conflicts": others("ncu.json")}
    target = folder / f"contractions-{label}-{date}.json"
    results_file.write(target, result)
    print(f"written: {target}")


if __name__ == "__main__":
    main()
