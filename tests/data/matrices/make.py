#!/usr/bin/env python3
"""Writes the matrices of this folder and index.csv, which tests compare with what the readers find.

The patterns imitate pruned layers, graphs and finite differences. The same files come out of every
run. Only the standard library is needed.
"""
import io
import json
import os
import random
import struct
import zipfile

FOLDER = os.path.dirname(os.path.abspath(__file__))


def pruned(rows, cols, density, seed):
    draw = random.Random(seed)
    return {(r, c): round(draw.gauss(0, 0.05), 4) or 0.05
            for r in range(rows) for c in range(cols) if draw.random() < density}


def skewed(rows, cols, seed):
    draw = random.Random(seed)
    return {(r, c): round(draw.uniform(-1, 1), 3) or 1.0
            for r in range(rows) for c in range(cols) if draw.random() < 0.8 / (1 + r % 16)}


def stencil(n):
    size = n * n
    entries = {}
    for r in range(size):
        for step, value in ((0, 4.0), (1, -1.0), (-1, -1.0), (n, -1.0), (-n, -1.0)):
            c = r + step
            if 0 <= c < size and not (abs(step) == 1 and r // n != c // n):
                entries[r, c] = value
    return entries


def blocks(rows, cols, side, density, seed):
    draw = random.Random(seed)
    return {(br * side + i, bc * side + j): round(draw.gauss(0, 1), 3) or 1.0
            for br in range(rows // side) for bc in range(cols // side) if draw.random() < density
            for i in range(side) for j in range(side)}


def smtx(rows, cols, entries):
    places = sorted(entries)
    begin = [sum(1 for r, _ in places if r < row) for row in range(rows + 1)]
    line = lambda numbers: " ".join(map(str, numbers)) + "\n"
    return f"{rows}, {cols}, {len(places)}\n" + line(begin) + line(c for _, c in places)


def mtx(rows, cols, entries, field="real", symmetry="general", by_column=False):
    if symmetry != "general":
        entries = {p: v for p, v in entries.items() if p[0] >= p[1]}
    order = sorted(entries, key=lambda p: (p[1], p[0]) if by_column else p)
    text = f"%%MatrixMarket matrix coordinate {field} {symmetry}\n{rows} {cols} {len(order)}\n"
    for r, c in order:
        value = "" if field == "pattern" else f" {int(entries[r, c]) if field == 'integer' else entries[r, c]}"
        text += f"{r + 1} {c + 1}{value}\n"
    return text


def mask(rows, cols, entries):
    lines = (" ".join("01"[(r, c) in entries] for c in range(cols)) for r in range(rows))
    return f"{rows} {cols}\n" + "\n".join(lines) + "\n"


def dense(rows, cols, entries):
    return b"".join(struct.pack("<f", entries.get((r, c), 0)) for r in range(rows) for c in range(cols))


def npy(descr, shape, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def npz(rows, cols, entries):
    places = sorted(entries)
    line = lambda code, numbers: npy("<" + {"i": "i4", "d": "f8"}[code], (len(numbers),),
                                     struct.pack(f"<{len(numbers)}{code}", *numbers))
    members = {"row": line("i", [r for r, _ in places]), "col": line("i", [c for _, c in places]),
               "data": line("d", [entries[p] for p in places]), "shape": line("i", [rows, cols]),
               "format": npy("|S3", (), b"coo")}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name + ".npy"), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def safetensors(rows, cols, entries):
    data = dense(rows, cols, entries)
    header = json.dumps({"layer.weight": {"dtype": "F32", "shape": [rows, cols],
                                          "data_offsets": [0, len(data)]}}).encode()
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + data


def main():
    layer, tall, wide = pruned(64, 96, 0.1, 1), pruned(120, 30, 0.2, 2), pruned(24, 200, 0.05, 3)
    graph, grid, cells = skewed(80, 80, 4), stencil(8), blocks(64, 64, 8, 0.25, 5)
    turned = {(r, c): v if r > c else -v for (r, c), v in
              {(max(p), min(p)): v for p, v in graph.items() if p[0] != p[1]}.items()}
    turned |= {(c, r): -v for (r, c), v in turned.items()}
    files = {
        "layer.smtx": (64, 96, layer, smtx), "tall.smtx": (120, 30, tall, smtx),
        "empty_rows.smtx": (50, 40, {p: 1 for p in layer if p[0] % 5 == 0 and p < (50, 0) and p[1] < 40}, smtx),
        "layer.mtx": (64, 96, layer, mtx),
        "columns_pattern.mtx": (24, 200, wide, lambda *m: mtx(*m, field="pattern", by_column=True)),
        "grid_symmetric.mtx": (64, 64, grid, lambda *m: mtx(*m, symmetry="symmetric")),
        "graph_skew.mtx": (80, 80, turned, lambda *m: mtx(*m, symmetry="skew-symmetric")),
        "grid_integer.mtx": (64, 64, grid, lambda *m: mtx(*m, field="integer")),
        "blocks.mtx": (64, 64, cells, mtx),
        "mask.txt": (40, 30, {p: 1 for p in tall if p[0] < 40}, mask),
        "layer.npy": (24, 200, wide, lambda *m: npy("<f4", m[:2], dense(*m))),
        "graph.npz": (80, 80, graph, npz),
        "cells.safetensors": (64, 64, cells, safetensors),
    }
    index = ["file,bytes,rows,cols,nnz,density,row_max,row_cv,col_max,col_cv,empty_rows,empty_cols"]
    for name, (rows, cols, entries, write) in files.items():
        content = write(rows, cols, entries)
        content = content.encode() if isinstance(content, str) else content
        with open(os.path.join(FOLDER, name), "wb") as out:
            out.write(content)
        row = [sum(1 for p in entries if p[0] == r) for r in range(rows)]
        col = [sum(1 for p in entries if p[1] == c) for c in range(cols)]
        index.append(f"{name},{len(content)},{rows},{cols},{len(entries)},{len(entries) / rows / cols:.5f},"
                     f"{max(row)},,{max(col)},,{row.count(0)},{col.count(0)}")
    with open(os.path.join(FOLDER, "index.csv"), "w") as out:
        out.write("\n".join(index) + "\n")


if __name__ == "__main__":
    main()
