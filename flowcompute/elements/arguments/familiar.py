"""Names of other libraries, and what stands for them here."""

INSTEAD = {
    "apply": "fc.host(function, x)",
    "argsort": "fc.argsort(x)",
    "collect": "x.resolve()",
    "compute": "x.resolve()",
    "describe": "fc.describe(x).resolve()",
    "diagonal": "fc.diagonal(x)",
    "flatten": "fc.flatten(x)",
    "iloc": "x[start:stop]",
    "item": "x.resolve()",
    "map": "fc.host(function, x)",
    "map_batches": "fc.host(function, x)",
    "median": "fc.median(x, axis)",
    "numpy": "x.to_numpy()",
    "quantile": "fc.quantile(x, q, axis)",
    "rolling": "fc.window(x, size)",
    "save": "x >> fc.save(path)",
    "sort": "fc.sort(x) inside of items; fc.top_k gives the largest of a stream",
    "squeeze": "fc.squeeze(x)",
    "tail": "x[-n:]",
    "take": "fc.take(x, indices, axis)",
    "tolist": "x.to_numpy().tolist()",
    "trace": "fc.trace(x)",
    "transpose": "fc.permute_dims(x, axes) or x.T",
    "values": "x.to_numpy()",
}
"""What stands for attributes that arrays and tables of other libraries have."""
