#!/usr/bin/env python3
"""Packs a vocabulary as OpenAI publishes it (one line per token: base64, rank) into the form that `tokenizer` embeds.

    curl -O https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken
    scripts/vocabulary.py o200k_base.tiktoken crates/tokenizer/data/o200k.zst

The packed form is zstd over the length of every token in order of rank, one byte each, then a zero, then the tokens.
"""

import base64
import subprocess
import sys


def main() -> None:
    source, packed = sys.argv[1:]
    tokens = []
    with open(source, encoding="ascii") as lines:
        for line in lines:
            token, rank = line.split()
            assert int(rank) == len(tokens), f"rank {rank} comes after rank {len(tokens) - 1}"
            tokens.append(base64.b64decode(token))
    assert all(0 < len(token) < 256 for token in tokens), "a length has to fit into one byte"
    unpacked = bytes(len(token) for token in tokens) + b"\0" + b"".join(tokens)
    with open(packed, "wb") as file:
        subprocess.run(["zstd", "--ultra", "-22", "--stdout"], input=unpacked, stdout=file, check=True)


if __name__ == "__main__":
    main()
