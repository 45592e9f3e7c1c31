"""Vector adapters of the area `router`: what foreign routers do with a file and a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yaml

from models_app.core.export import load, schema
from models_app.core.export.router import admission, command, load_rules, matrix, requests
from tests.adapters.fields import take

Vector = dict[str, Any]


def load_config(given: Vector) -> Vector:
    dialect, config, text, environ = take(given, "dialect", "config?", "text?", "env?")
    if text is None:
        text = yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
    loaded = load_rules.load_config(dialect, text, environ or {})
    answer: Vector = {
        "loads": loaded.loads,
        "error": None,
        "models": {name: dict(model) for name, model in loaded.models.items()},
        "catalogue": dict(loaded.catalogue),
    }
    try:
        answer["schema_ok"] = schema.is_valid("llama-swap", load.load(text).value)
    except load.LoadError:
        answer["schema_ok"] = False
    if loaded.violations:
        answer["errors"] = [violation.message for violation in loaded.violations]
    return answer


def yaml_cmd_argv(given: Vector) -> Vector:
    return {"argv": command.spawned_argv(*take(given, "style", "lines", "port"))}


def admission_evict(given: Vector) -> Vector:
    groups, budget, estimates, running, target, ceiling = take(
        given, "groups", "budget_gb", "est_gb", "running", "target", "live_ceiling_gb?"
    )
    stopped = admission.evictions(groups, estimates, running, target, budget_gb=budget, live_ceiling_gb=ceiling)
    return {"evict": stopped}


def matrix_expand(given: Vector) -> Vector:
    (expression,) = take(given, "expr")
    return {"sets": matrix.expand(matrix.parse(expression))}


def matrix_solve(given: Vector) -> Vector:
    return {"evict": matrix.solve(*take(given, "sets", "evict_costs", "running", "target"))}


def parse_ctx_request(given: Vector) -> Vector:
    (name,) = take(given, "name")
    return requests.parse_ctx_request(name)._asdict()


def resolve_ctx_request(given: Vector) -> Vector:
    return {"model": requests.resolve_ctx_request(*take(given, "models", "aliases", "name"))}


def scope_check(given: Vector) -> Vector:
    models, unlisted, key_models, listener_models, request_model = take(
        given, "models", "unlisted", "key_models?", "listener_models?", "request_model"
    )
    scope = requests.scope_check(
        models, unlisted, request_model, key_models=key_models or (), listener_models=listener_models
    )
    return scope._asdict()


def v1_models_record(given: Vector) -> Vector:
    (capabilities,) = take(given, "capabilities")
    return requests.v1_models_record(capabilities)


def upstream_split(given: Vector) -> Vector:
    model, rest = requests.upstream_split(*take(given, "models", "path"))
    return {"model": model, "rest": rest}


def decode_event(given: Vector) -> Vector:
    (text,) = take(given, "sse")
    kind, data = requests.decode_event(text)
    return {"type": kind, "data": data}


ADAPTERS: dict[str, Callable[[Vector], Vector]] = {
    "load_config": load_config,
    "yaml_cmd_argv": yaml_cmd_argv,
    "admission": admission_evict,
    "matrix_expand": matrix_expand,
    "matrix_solve": matrix_solve,
    "parse_ctx_request": parse_ctx_request,
    "resolve_ctx_request": resolve_ctx_request,
    "scope_check": scope_check,
    "v1_models_record": v1_models_record,
    "upstream_split": upstream_split,
    "decode_event": decode_event,
}
