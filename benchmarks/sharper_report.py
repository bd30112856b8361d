"""The sections of docs/sharper.md, from its stored result: tables, and sentences whose numbers are
computed.
"""

from __future__ import annotations

from benchmarks.markdown import Result, Table, Text, slug


def sharper_sections(result: Result) -> list[Table | Text]:
    """Of docs/sharper.md."""
    settings = result["settings"]
    near = "/".join("10^6" if number == 10**6 else str(number) for number in settings["near"])
    sections: list[Table | Text] = [_aim(result), _winner(result)]
    for family in dict.fromkeys(row["family"] for row in result["attempts"]):
        rows = [
            [row["attempt"], _leads(row["add-remove"]), _leads(row["replace"]), row["verdict"]]
            for row in result["attempts"]
            if row["family"] == family
        ]
        title = f"{family[0].upper()}{family[1:]}: lead with {near} tied"
        sections.append(
            Table(slug(family), title, ["", "add-remove", "replace", "verdict"], rows, prose=True)
        )
    return [*sections, _just_above(result)]


def _just_above(result: Result) -> Table:
    rows = [
        [f"`NestedMargin`, ranks {row['ranks']}", _leads(row["add-remove"]), _leads(row["replace"])]
        for row in result["just above"]
    ]
    title = (
        "One more than a rank of 32^j holds: lead with "
        f"{_leads(result['just above'][0]['near'])} tied"
    )
    return Table("just-above", title, ["", "add-remove", "replace"], rows)


def _aim(result: Result) -> Text:
    rows = {row["attempt"]: row for row in result["attempts"]}
    test = next(rows[name] for name in rows if name.startswith("`GapTest`"))
    oracle = next(rows[name] for name in rows if name.startswith("`LimitedDomain`, told"))
    ours = next(rows[name] for name in rows if name.startswith("`NestedMargin`: "))
    parts, ratios = [], []
    for relation in ("add-remove", "replace"):
        least = [test[relation][0], *oracle[relation][1:3]]
        leads = ours[relation][:3]
        ratios += [lead / floor for lead, floor in zip(leads, least, strict=True)]
        parts.append(f"{_leads(leads)} against {_leads(least)} under {relation}")
    verdict = "meets it" if max(ratios) <= 1.4 else "does not meet it"
    return Text(
        "aim",
        f"**The aim** was a lead of at most 1.4 times that of the optimal test for a single "
        f"winner, and of at most 1.4 "
        f"times that of the limited domain that knows how many near maximizers there are for 10 "
        f"and 1000 of them, "
        f"under both relations. "
        f"`NestedMargin` {verdict}: {parts[0]}, {parts[1]}; at worst {max(ratios):.2f} times.",
    )


def _winner(result: Result) -> Table:
    parts = {
        "optimal": "the optimal test",
        "guard": "a draw behind one guard instead of a test",
        "several": "several guards share delta",
        "reach": "ranks reach to 2^20",
        "nesting": "less epsilon for the draw, and rounding up",
    }
    relations = result["single winner"]
    rows = [
        [meaning, *(f"{made[part]:.1f}" for made in relations.values())]
        for part, meaning in parts.items()
    ]
    rows.append(["`NestedMargin`", *(f"{sum(made.values()):.0f}" for made in relations.values())])
    return Table(
        "winner", "What the lead of a single winner is made of, in records", ["", *relations], rows
    )


def _leads(leads: list[int | None]) -> str:
    return "/".join("–" if lead is None else str(lead) for lead in leads)
