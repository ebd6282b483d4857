"""Joins apl.json and peers.json of a folder into one dated result file and prints the table.

usage: table.py FOLDER
"""
import datetime
import json
import pathlib
import sys


def main():
    folder = pathlib.Path(sys.argv[1])
    ours = json.loads((folder / "apl.json").read_text(encoding="utf-8"))
    peers_file = folder / "peers.json"
    peers = json.loads(peers_file.read_text(encoding="utf-8")) if peers_file.exists() else {}
    device = peers.pop("device", "unknown device")
    version = peers.pop("torch", None)
    print(f"{'case':<12} {'apl ms':>9} {'GFLOP/s':>9} {'cuBLAS ms':>10} {'einsum ms':>10} {'of cuBLAS':>10} {'of einsum':>10}")
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
              f"{ratio('cublas'):>10} {ratio('einsum'):>10}")
    ablation_file = folder / "ablation.json"
    ablation = json.loads(ablation_file.read_text(encoding="utf-8")) if ablation_file.exists() else {}
    date = datetime.date.today().isoformat()
    label = device.lower().replace("nvidia ", "").replace(" ", "-")
    result = {"date": date, "device": device, "torch": version, "apl": ours, "peers": peers, "ablation": ablation}
    target = folder / f"contractions-{label}-{date}.json"
    target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"written: {target}")


if __name__ == "__main__":
    main()
