"""A client that is generated from the description, and used: who generates one gets what works."""

from __future__ import annotations

import importlib
import subprocess
import sys
import urllib.request
from pathlib import Path
from types import ModuleType
from typing import Any

_DATASET = "/lake/rows.shards"
# Bodies that are no JSON are bytes to the generator.
_SETTINGS = """\
content_type_overrides:
  application/sql: application/octet-stream
  application/x-ndjson: application/octet-stream
post_hooks: []
"""
_NAME = "generated_of_forebay"


def check(url: str, token: str, folder: Path) -> None:
    """Generates it into `folder`, and asks the cluster at `url` by it."""
    generated = _generate(url, folder)
    client = generated.AuthenticatedClient(base_url=url, token=token)

    def ask(operation: str, as_whom: Any = client, **parameters: Any) -> Any:
        module = importlib.import_module(f"{_NAME}.api.default.{operation}")
        answer = module.sync_detailed(client=as_whom, **parameters)
        assert answer.parsed is not None, f"{operation}: {answer}"
        return answer

    def body(text: bytes) -> Any:
        return importlib.import_module(f"{_NAME}.types").File(payload=text)

    assert [mount.name for mount in ask("status").parsed.mounts] == ["lake", "other"]
    assert "admin.1" in [one.id for one in ask("tokens").parsed.tokens]
    assert ask("savings", per_gb=0.02).parsed.saved_money >= 0
    filled = ask("filled", limit=5).parsed
    assert filled.held.segments >= len(filled.tables) and filled.workers_known == len(filled.workers) == 1, filled
    assert ask("sql", body=body(b"select 1 as one")).parsed.to_dict()["rows"] == [{"one": 1}]
    begun = ask("post_load", path="/lake/rows.jsonl").parsed.id
    assert begun in [load.id for load in ask("load").parsed.loads]
    assert ask("explain", path="/lake/rows.jsonl").parsed.segments
    assert ask("delete_load", id=begun).parsed.id == begun
    before = ask("shards_count", dataset=_DATASET).parsed.count
    record = {"id": 424242, "name": "clerk0", "note": "of a client that was generated"}
    made = importlib.import_module(f"{_NAME}.models").PutShardsRecordBody.from_dict(record)
    written = ask("put_shards_record", dataset=_DATASET, body=made).parsed.version
    read = ask("shards_record", dataset=_DATASET, key="424242").parsed.to_dict()
    assert read == {"record": record, "version": written}, read
    assert ask("shards_count", dataset=_DATASET).parsed.count == before + 1
    ask("delete_shards_record", dataset=_DATASET, key="424242", if_=str(written))
    assert ask("shards_record", dataset=_DATASET, key="424242").parsed.to_dict()["record"] is None
    refused = ask("status", generated.AuthenticatedClient(base_url=url, token="a guess of somebody"))
    assert (refused.status_code, refused.parsed.error) == (401, "denied"), refused
    print("a client that was generated from the description works")


def _generate(url: str, folder: Path) -> ModuleType:
    document, settings = folder / "openapi.json", folder / "generator.yaml"
    with urllib.request.urlopen(f"{url}/api/v1/openapi.json", timeout=30) as answer:
        document.write_bytes(answer.read())
    settings.write_text(_SETTINGS)
    command = [str(Path(sys.executable).parent / "openapi-python-client"), "generate", "--meta", "none", "--config", str(settings)]
    subprocess.run([*command, "--path", str(document), "--output-path", str(folder / _NAME)], check=True, stdout=subprocess.DEVNULL)
    sys.path.insert(0, str(folder))
    return importlib.import_module(_NAME)
