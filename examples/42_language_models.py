"""A language model from a GGUF file: an answer is frozen halfway and goes on; texts are scored as one stream."""

import os
import tempfile

import gguf
import numpy as np

import flowcompute as fc

WIDE, PIECES = 64, ["<unk>", "<s>", "</s>", *"▁abcdefghijklmnopqrstuvwxyz"]
LAYER = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
NUMBERS = {"context_length": 128, "embedding_length": WIDE, "block_count": 1, "feed_forward_length": WIDE}
with tempfile.TemporaryDirectory() as folder:
    # A llama of one layer with random weights, so that nothing is fetched. A file that you have does as well.
    path, kept, rng = os.path.join(folder, "tiny.gguf"), os.path.join(folder, "kept"), np.random.default_rng(0)
    file = gguf.GGUFWriter(path, "llama")
    for name, number in {**NUMBERS, "attention.head_count": 2}.items():
        file.add_uint32(f"llama.{name}", number)
    file.add_layer_norm_rms_eps(1e-5)
    file.add_tokenizer_model("llama")
    file.add_token_list(PIECES)
    file.add_token_scores([0.0] * len(PIECES))
    file.add_token_types([2, 3, 3, *[1] * (len(PIECES) - 3)])
    for name in ("token_embd", *(f"blk.0.{one}" for one in LAYER)):
        rows = len(PIECES) if name == "token_embd" else WIDE
        file.add_tensor(f"{name}.weight", rng.standard_normal((rows, WIDE), dtype=np.float32) / 8)
    for name in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        file.add_tensor(f"{name}.weight", np.ones(WIDE, np.float32))
    for write in (file.write_header_to_file, file.write_kv_data_to_file, file.write_tensors_to_file, file.close):
        write()
    model = fc.models.load(path)
    with model.generate("hello", max_tokens=12) as said:
        print("begun:", next(said), next(said))
        said.freeze(kept)
        whole = "".join(said)
    with fc.thaw(kept).generation() as again:
        assert "".join(again) == whole
    pairs = model.tokens(["hello", "olleh"])
    print(fc.segment_sum(model.losses(pairs), pairs[:, 1], 2).resolve(progress=False))
