"""Writes the data sets that come with privmax. All of it is invented here; docs/samples.md tells
what they are like.

./dev python tools/samples.py            writes them
./dev python tools/samples.py --check    fails if a file is not what it would write
"""

from __future__ import annotations

import csv
import io
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from random import Random
from typing import TypeVar

from privmax import samples

Row = tuple[object, ...]
T = TypeVar("T")

MEMBERS = 1500
RECEIPTS = 6000
BEST_PAIR = ("sourdough bread", "butter")
BEST_BUYERS = 48
"""Members with the best pair on a receipt. Few enough that e^48 is far below the number of pairs of
10^12 barcodes.
"""

PAIRS = """
spaghetti + tomato sauce; tortilla chips + salsa; ground coffee + filter papers
black tea + lemons; muesli + yoghurt; pancake mix + maple syrup; eggs + bacon
frankfurters + mustard; crackers + brie; gin + tonic water; beer + peanuts; rice + soy sauce
toothbrush + toothpaste; batteries + torch; dog food + dog biscuits; cat food + cat litter
strawberries + cream; potatoes + onions; carrots + celery; matches + candles; envelopes + stamps
flour + yeast; burger buns + minced beef; ice cream + wafers; olive oil + balsamic vinegar
feta + olives; mozzarella + basil; shampoo + conditioner; baby wipes + nappies
newspaper + croissant
"""
PAIR_BUYERS = range(5, 12)
"""How many members are given each of these pairs; by chance a few more have it."""

ARTICLES = """
apples; apricots; asparagus; aubergine; avocado; bananas; basil; beetroot; blueberries; broccoli
cabbage; carrots; cauliflower; celery; cherries; chestnuts; courgettes; cucumber; dates; fennel
figs; garlic; ginger; grapefruit; grapes; green beans; kale; kiwis; leeks; lemons; lettuce; limes
mangoes; melon; mint; mushrooms; nectarines; onions; oranges; parsley; parsnips; peaches; pears
peas; peppers; pineapple; plums; potatoes; pumpkin; radishes; raspberries; rhubarb; rocket
spinach; spring onions; strawberries; sweet potatoes; sweetcorn; tomatoes; turnips; watercress
bagels; baguette; brioche; burger buns; ciabatta; crispbread; croissant; crumpets; rye bread
scones; sourdough bread; sliced bread; pitta bread; muffins; rolls; wafers
brie; butter; buttermilk; cheddar; cottage cheese; cream; cream cheese; eggs; feta; goat cheese
gouda; kefir; margarine; milk; mozzarella; oat milk; parmesan; ricotta; soy milk; yoghurt
bacon; chicken breast; cod; frankfurters; ham; hummus; lamb chops; mackerel; minced beef; prawns
salami; salmon; sausages; smoked trout; tofu; tuna; turkey slices
anchovies; baked beans; balsamic vinegar; barley; biscuits; black tea; bouillon; bulgur; capers
chickpeas; chutney; cocoa; coconut milk; couscous; crackers; curry paste; flour; gherkins
green tea; ground coffee; honey; jam; ketchup; kidney beans; lentils; maple syrup; marmalade
mayonnaise; muesli; mustard; noodles; nutmeg; olive oil; olives; pancake mix; peanut butter
pepper; pesto; porridge oats; raisins; rice; salt; soy sauce; spaghetti; sugar; sunflower oil
tomato paste; tomato sauce; vanilla; vinegar; walnuts; yeast
almonds; chewing gum; chocolate; crisps; fudge; ice cream; liquorice; marzipan; peanuts; popcorn
pretzels; salsa; tortilla chips
apple juice; beer; cider; cola; gin; ginger ale; lemonade; mineral water; orange juice; prosecco
red wine; tonic water; white wine
baby wipes; batteries; bin bags; candles; cat food; cat litter; cling film; conditioner; dish soap
dog biscuits; dog food; envelopes; filter papers; foil; hand soap; kitchen paper; light bulbs
magazine; matches; nappies; newspaper; notebook; razor blades; shampoo; sponges; stamps; sun cream
tape; tea towels; tissues; toilet paper; toothbrush; toothpaste; torch; washing powder
"""

PEOPLE = 1200
FAVOURITES = {"rain boots": 580, "trail shoes": 420, "winter coat": 260, "wool socks": 100}
"""People who typed these. The best three can be told in order at epsilon 1; the others are near one
another.
"""
TWO_WORDS = (
    "rain trail winter wool running garden kids leather summer work party hiking vintage red "
    "outdoor sailing",
    "boots shoes coat socks jacket gloves hat scarf belt tent shirt shorts trousers sweater bag "
    "umbrella sandals",
)
EAGER = "party tent"
"""One person typed this some 900 times, more often than all others together typed anything."""


def receipts(random: Random) -> Iterable[Row]:
    """Mostly baskets of articles that have nothing to do with each other; into some of them goes a
    pair that has.
    """
    articles = _listed(ARTICLES)
    random.shuffle(articles)
    popular = _weighted(articles, [100_000 // (rank + 30) for rank in range(len(articles))])
    frequent = _weighted(range(1, MEMBERS + 1), [random.randrange(1, 8) for _ in range(MEMBERS)])
    sizes = _weighted((1, 2, 3, 4), (30, 35, 22, 13))
    owners = [*range(1, MEMBERS + 1), *(frequent(random) for _ in range(RECEIPTS - MEMBERS))]
    random.shuffle(owners)
    begun: list[list[str]] = [[] for _ in owners]
    for pair in _listed(PAIRS):
        _give(begun, owners, pair.split(" + "), random.choice(PAIR_BUYERS), random)
    _give(begun, owners, BEST_PAIR, BEST_BUYERS, random)
    yield "receipt", "member", "article"
    other = dict(zip(BEST_PAIR, reversed(BEST_PAIR), strict=True))
    for number, (owner, basket) in enumerate(zip(owners, begun, strict=True), 1):
        size = sizes(random)
        while len(basket) < size:
            article = popular(random)
            if (
                article not in basket and other.get(article) not in basket
            ):  # nobody has the best pair by chance
                basket.append(article)
        random.shuffle(basket)
        yield from ((number, owner, article) for article in basket)


def searches(random: Random) -> Iterable[Row]:
    rows = []
    for query, number in _people(random).items():
        for person in random.sample(range(1, PEOPLE + 1), number):
            rows += [(person, query)] * (1 if random.randrange(4) else 2)
    rows += [(617, EAGER)] * 900
    random.shuffle(rows)
    return [("person", "query"), *rows]


def counts(random: Random) -> Iterable[Row]:
    """The log, counted: the same stream of random numbers makes it again."""
    people: dict[object, set[object]] = {}
    for person, query in list(searches(random))[1:]:
        people.setdefault(query, set()).add(person)
    return [("query", "people"), *sorted((query, len(found)) for query, found in people.items())]


def members(random: Random) -> Iterable[Row]:
    """Who came 25 times or more has a card, but for one in twelve where it is the other way
    round.
    """
    yield "age", "visits", "spend", "distance", "card"
    for _ in range(MEMBERS):
        age, visits = 18 + random.randrange(75), min(random.randrange(60), random.randrange(90))
        cents = 200 + random.randrange(4000) + 20 * visits + 10 * age
        distance = 1 + random.randrange(max(4, 45 - visits // 2))
        card = int(visits >= 25) ^ (random.randrange(12) == 0)
        yield age, visits, f"{cents // 100}.{cents % 100:02d}", distance, card


def _people(random: Random) -> dict[str, int]:
    """How many people type each query: favourites far ahead, then a long tail."""
    queries = [f"{one} {other}" for one in TWO_WORDS[0].split() for other in TWO_WORDS[1].split()]
    rest = [query for query in queries if query not in FAVOURITES]
    random.shuffle(rest)
    rest.append(rest.pop(rest.index(EAGER)))
    return FAVOURITES | {query: 900 // (rank + 12) for rank, query in enumerate(rest)}


def _give(
    begun: list[list[str]], owners: list[int], pair: Sequence[str], buyers: int, random: Random
) -> None:
    """Put a pair on an empty receipt of each of so many members, and on a second one of some of
    them.
    """
    free = [place for place, basket in enumerate(begun) if not basket]
    random.shuffle(free)
    served: dict[int, int] = {}
    for place in free:
        owner = owners[place]
        if served.get(owner, 0) < (2 if owner % 5 == 0 else 1) and (
            owner in served or len(served) < buyers
        ):
            begun[place] = list(pair)
            served[owner] = served.get(owner, 0) + 1


def _listed(text: str) -> list[str]:
    return [name.strip() for line in text.strip().splitlines() for name in line.split(";")]


def _weighted(values: Sequence[T], weights: Sequence[int]) -> Callable[[Random], T]:
    """Draws one of the values, each with its weight."""
    upto = list(accumulate(weights))
    return lambda random: values[bisect_right(upto, random.randrange(upto[-1]))]


MADE: dict[str, tuple[Callable[[Random], Iterable[Row]], int]] = {
    "receipts": (receipts, 1),
    "searches": (searches, 2),
    "counts": (counts, 2),
    "members": (members, 3),
}
"""How each data set is made, and with which seed."""


def written(name: str) -> str:
    """The text of a data set."""
    rows, seed = MADE[name]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows(Random(seed)))
    return text.getvalue()


def main(arguments: list[str]) -> int:
    stale = []
    for name in samples.NAMES:
        path, text = samples.path(name), written(name).encode()
        if arguments == ["--check"]:
            if not path.is_file() or path.read_bytes() != text:
                stale.append(path.name)
        else:
            path.write_bytes(text)
    for name in stale:
        print(f"{name} is stale: run ./dev python tools/samples.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
