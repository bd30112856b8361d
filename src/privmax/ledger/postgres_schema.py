"""The tables of ledgers in PostgreSQL, what they refuse, and the functions that write them.

The database checks every event exactly as privmax does before it builds on one, but for what takes
more than fractions: the cost of all charges together under "zcdp" and "pld". Nobody needs the
right to insert: who may call `privmax_append` adds events, as far as these checks and the owner's
row-level policies allow.
"""

from __future__ import annotations

from privmax.ledger.events import DEEPEST, LARGEST, LONGEST, REASON, SCHEMA, UNPRINTED
from privmax.ledger.rules import RULES, STEPS
from privmax.ledger.shapes import MOMENT
from privmax.numbers import LONGEST as DIGITS
from privmax.privacy import LEAST

MAKING = 0x504D584C
"""Key of the lock that is held while the tables are made."""

MARK = f"privmax ledgers, version {SCHEMA}"

PATIENCE = 60
"""Seconds to wait for others who write."""

_NUMBER = "^[0-9]+(|/[0-9]*[1-9][0-9]*)$"
"""A fraction that is not negative, as `events.exact_text` writes it; `privmax_number` refuses those
that are too long for Python to read.
"""

_FLOAT = (
    "^-{0,1}((0|[1-9][0-9]{0,15})[.]([0-9]*[1-9]|0)|"
    "[1-9]([.][0-9]*[1-9]){0,1}e([+](1[6-9]|[2-9][0-9]|[1-3][0-9]{2})|"
    "-(0[5-9]|[1-9][0-9]|[1-3][0-9]{2})))$"
)
"""A float as Python writes it."""

_ESCAPED = (
    r'^([^\\]|\\(["\\nrtbf]|u(000[0-7bef]|001[0-9a-f]|007f|00[89a-f][0-9a-f]|'
    r"0[1-9a-f][0-9a-f]{2}|[1-9a-f][0-9a-f]{3})))*$"
)
"""JSON in which all is escaped as Python does it."""

_RULES = ", ".join(f"'{name}'" for name in RULES)

_WIDE = 1 << 192
"""Sums whose denominator is above this are rounded up to a multiple of one over it, as
`rules.short` does.
"""

TABLES = f"""
CREATE TABLE privmax_ledgers (
    name text COLLATE "C" NOT NULL PRIMARY KEY,
    seq bigint NOT NULL,
    hash text NOT NULL
);
CREATE TABLE privmax_events (
    ledger text COLLATE "C" NOT NULL REFERENCES privmax_ledgers (name),
    seq bigint NOT NULL,
    kind text NOT NULL,
    moment text NOT NULL,
    who text NOT NULL,
    request text COLLATE "C",
    account text COLLATE "C",
    body text NOT NULL,
    totals text NOT NULL,
    hash text NOT NULL,
    PRIMARY KEY (ledger, seq)
);
CREATE UNIQUE INDEX privmax_events_request ON privmax_events (ledger, request, kind)
    WHERE request IS NOT NULL;
CREATE INDEX privmax_events_account ON privmax_events (ledger, account, seq)
    WHERE account IS NOT NULL;
CREATE FUNCTION privmax_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'ledgers and their events are never changed or deleted'; END $$;
CREATE FUNCTION privmax_follow() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE privmax_ledgers SET seq = NEW.seq, hash = NEW.hash WHERE name = NEW.ledger
            AND seq = NEW.seq - 1;
        IF NOT FOUND THEN RAISE EXCEPTION 'an event follows the last one'; END IF;
        RETURN NULL;
    END $$;
CREATE FUNCTION privmax_head() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.name <> OLD.name OR NEW.seq <> OLD.seq + 1 OR NOT EXISTS (
            SELECT 1 FROM privmax_events WHERE ledger = NEW.name AND seq = NEW.seq
                AND hash = NEW.hash)
        THEN RAISE EXCEPTION 'the head only follows events'; END IF;
        RETURN NEW;
    END $$;
DO $$
    DECLARE path text := format('SET search_path = pg_catalog, %I, pg_temp', current_schema());
    BEGIN
        EXECUTE 'ALTER FUNCTION privmax_follow() ' || path;
        EXECUTE 'ALTER FUNCTION privmax_head() ' || path;
    END $$;
CREATE TRIGGER privmax_events_follow AFTER INSERT ON privmax_events FOR EACH ROW EXECUTE FUNCTION
    privmax_follow();
CREATE TRIGGER privmax_events_kept BEFORE UPDATE OR DELETE ON privmax_events
    FOR EACH ROW EXECUTE FUNCTION privmax_refuse();
CREATE TRIGGER privmax_events_held BEFORE TRUNCATE ON privmax_events EXECUTE FUNCTION
    privmax_refuse();
CREATE TRIGGER privmax_ledgers_new BEFORE INSERT ON privmax_ledgers
    FOR EACH ROW WHEN (NEW.seq <> 0) EXECUTE FUNCTION privmax_refuse();
CREATE TRIGGER privmax_ledgers_kept BEFORE UPDATE ON privmax_ledgers FOR EACH ROW EXECUTE FUNCTION
    privmax_head();
CREATE TRIGGER privmax_ledgers_held BEFORE DELETE ON privmax_ledgers FOR EACH ROW EXECUTE FUNCTION
    privmax_refuse();
CREATE TRIGGER privmax_ledgers_whole BEFORE TRUNCATE ON privmax_ledgers EXECUTE FUNCTION
    privmax_refuse();
COMMENT ON TABLE privmax_events IS '{MARK}';
"""
"""The tables of version 0.1.0. Events are added in order, and never changed."""

CHECKS = f"""
CREATE OR REPLACE FUNCTION privmax_quoted(given text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
    BEGIN
        IF given IS NULL THEN RETURN 'null'; END IF;
        IF octet_length(given) = length(given) THEN RETURN to_json(given)::text; END IF;
        RETURN '"' || (SELECT string_agg(CASE
                WHEN code < 128 THEN substr(to_json(letter)::text, 2, length(to_json(letter)::text)
                    - 2)
                WHEN code < 65536 THEN '\\u' || lpad(to_hex(code), 4, '0')
                ELSE '\\u' || to_hex(55296 + ((code - 65536) >> 10)) || '\\u' || to_hex(56320 +
                    ((code - 65536) & 1023))
            END, '' ORDER BY place)
            FROM regexp_split_to_table(given, '') WITH ORDINALITY AS letters (letter, place),
                ascii(letter) AS code
        ) || '"';
    END $$;
CREATE OR REPLACE FUNCTION privmax_readable(given text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE AS $$
    BEGIN
        IF given !~ '\\\\u(0000|d[89a-f])' THEN RETURN given; END IF;
        given := replace(given, '\\\\', chr(1));
        given := regexp_replace(given, '\\\\u(d[89ab][0-9a-f]{{2}})\\\\u(d[c-f][0-9a-f]{{2}})',
            '\\\\x\\1\\\\x\\2', 'g');
        given := regexp_replace(given, '\\\\u(0000|d[89a-f][0-9a-f]{{2}})', '/', 'g');
        RETURN replace(replace(given, '\\x', '\\u'), chr(1), '\\\\');
    END $$;
CREATE OR REPLACE FUNCTION privmax_json(given text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
    BEGIN RETURN privmax_readable(given)::jsonb; END $$;
CREATE OR REPLACE FUNCTION privmax_above(given text) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
    SELECT split_part(given, '/', 1)::numeric $$;
CREATE OR REPLACE FUNCTION privmax_below(given text) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE strpos(given, '/') WHEN 0 THEN 1 ELSE split_part(given, '/', 2)::numeric END $$;
CREATE OR REPLACE FUNCTION privmax_most(one text, other text) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE STRICT AS $$
    BEGIN
        RETURN privmax_above(one) * privmax_below(other)
            <= privmax_above(other) * privmax_below(one);
    END $$;
CREATE OR REPLACE FUNCTION privmax_fraction(above numeric, below numeric, wide numeric) RETURNS text
    LANGUAGE plpgsql IMMUTABLE AS $$
    DECLARE common numeric := gcd(above, below);
    BEGIN
        IF common > 1 THEN above := div(above, common); below := div(below, common); END IF;
        IF below >= wide THEN
            above := div(above * wide + below - 1, below);
            common := gcd(above, wide);
            above := div(above, common);
            below := div(wide, common);
        END IF;
        RETURN CASE WHEN below = 1 THEN above::text ELSE above || '/' || below END;
    END $$;
CREATE OR REPLACE FUNCTION privmax_sum(one text, other text, wide numeric) RETURNS text
    LANGUAGE plpgsql IMMUTABLE AS $$
    DECLARE
        below numeric := privmax_below(one);
        another numeric := privmax_below(other);
    BEGIN
        RETURN privmax_fraction(privmax_above(one) * another + privmax_above(other) * below,
            below * another, wide);
    END $$;
CREATE OR REPLACE FUNCTION privmax_share(one text, other text, wide numeric) RETURNS text
    LANGUAGE plpgsql IMMUTABLE AS $$
    DECLARE total text := privmax_sum(one, other, wide);
    BEGIN
        RETURN CASE WHEN privmax_above(total) >= privmax_below(total) THEN '1' ELSE total END;
    END $$;
CREATE OR REPLACE FUNCTION privmax_number(given text) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE AS $$
    BEGIN RETURN coalesce(given ~ '{_NUMBER}' AND length(split_part(given, '/', 1)) <= {DIGITS}
        AND length(split_part(given, '/', 2)) <= {DIGITS}, false); END $$;
CREATE OR REPLACE FUNCTION privmax_label(given text, longest integer) RETURNS boolean
    LANGUAGE plpgsql STABLE AS $$
    BEGIN RETURN length(given) BETWEEN 1 AND longest AND CASE getdatabaseencoding()
        WHEN 'UTF8' THEN given !~ '[{UNPRINTED}]' ELSE given !~ '[\\x01-\\x1f]' END; END $$;
CREATE OR REPLACE FUNCTION privmax_exact(given jsonb) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE AS $$
    BEGIN RETURN coalesce(jsonb_typeof(given->'epsilon') = 'string'
        AND jsonb_typeof(given->'delta') = 'string' AND privmax_number(given->>'epsilon')
        AND CASE WHEN privmax_number(given->>'delta')
            THEN privmax_most(given->>'delta', '1') ELSE false END, false); END $$;
CREATE OR REPLACE FUNCTION privmax_priced(price jsonb) RETURNS boolean
    LANGUAGE plpgsql STABLE AS $$
    BEGIN RETURN privmax_exact(price) AND coalesce(
        price->>'neighbors' IN ('add-remove', 'replace')
            AND jsonb_typeof(price) = 'object' AND jsonb_typeof(price->'ranged') = 'boolean'
            AND coalesce(jsonb_typeof(price->'unit'), 'string') = 'string'
            AND coalesce(jsonb_typeof(price->'rho'), 'string') = 'string'
            AND privmax_number(coalesce(price->>'rho', '0'))
            AND privmax_label(coalesce(price->>'unit', '-'), {LONGEST}), false); END $$;
CREATE OR REPLACE FUNCTION privmax_states_rho(state jsonb, price jsonb) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE AS $$
    BEGIN RETURN coalesce(price->'rho' IS NOT NULL AND jsonb_typeof(state->'tally') = 'string'
        AND privmax_most('{LEAST}', state->>'slack'), false); END $$;
CREATE OR REPLACE FUNCTION privmax_tally(state jsonb, epsilon text) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE AS $$
    DECLARE
        tally jsonb := state->'tally';
        steps text := div(privmax_above(epsilon) * {STEPS} + privmax_below(epsilon) - 1,
            privmax_below(epsilon))::text;
        most integer := (state->>'different')::integer;
        pair record;
    BEGIN
        tally := tally || jsonb_build_object(steps, coalesce((tally->>steps)::numeric, 0) + 1);
        WHILE (SELECT count(*) FROM jsonb_object_keys(tally)) > most LOOP
            SELECT * INTO pair FROM (
                SELECT key::numeric AS low, lead(key::numeric) OVER (ORDER BY key::numeric) AS high,
                    value::numeric AS times FROM jsonb_each_text(tally)) AS pairs
                WHERE high IS NOT NULL ORDER BY times * (high - low), low LIMIT 1;
            tally := tally - pair.low::text || jsonb_build_object(
                pair.high::text, (tally->>pair.high::text)::numeric + pair.times);
        END LOOP;
        RETURN tally;
    END $$;
CREATE OR REPLACE FUNCTION privmax_follows(kind text, body jsonb, old jsonb, new jsonb)
    RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE AS $$
    DECLARE
        wide numeric := {_WIDE};
        sums jsonb := CASE WHEN old->'state' = '{{}}' THEN old->'spent' ELSE old->'state' END;
        price jsonb := body->'price';
        by_rho boolean := privmax_states_rho(old->'state', price);
        epsilon text := privmax_sum(sums->>'epsilon', price->>'epsilon', wide);
        delta text := privmax_share(sums->>'delta',
            CASE WHEN by_rho THEN '0' ELSE price->>'delta' END, wide);
        slack text := old->'state'->>'slack';
        more jsonb := body->'more';
        known text;
    BEGIN
        IF kind = 'granted' THEN
            RETURN privmax_exact(more)
                AND old - 'budget' = new - 'budget' AND new->'budget' = jsonb_build_object(
                'epsilon', privmax_sum(old->'budget'->>'epsilon', more->>'epsilon', 'Infinity'),
                'delta', privmax_share(old->'budget'->>'delta', more->>'delta', 'Infinity'));
        ELSIF kind <> 'reserved' THEN
            RETURN old = new;
        END IF;
        IF NOT privmax_priced(price) OR old->'budget' <> new->'budget'
            OR new->>'neighbors' IS DISTINCT FROM price->>'neighbors'
            OR new->>'unit' IS DISTINCT FROM price->>'unit'
            OR coalesce(old->>'neighbors', new->>'neighbors') <> new->>'neighbors'
            OR coalesce(old->>'unit', new->>'unit') IS DISTINCT FROM new->>'unit' THEN
            RETURN false;
        ELSIF slack IS NULL THEN
            RETURN new->'state' = '{{}}' AND new->'spent' = jsonb_build_object('epsilon', epsilon,
                'delta', delta);
        END IF;
        IF by_rho THEN
            known := privmax_sum(old->'state'->>'tally', price->>'rho', wide);
        ELSIF jsonb_typeof(old->'state'->'tally') = 'string' THEN
            known := privmax_sum(old->'state'->>'tally', privmax_fraction(
                privmax_above(price->>'epsilon') * privmax_above(price->>'epsilon'),
                privmax_below(price->>'epsilon') * privmax_below(price->>'epsilon')
                    * CASE WHEN (price->>'ranged')::boolean AND privmax_above(price->>'delta') = 0
                        THEN 8 ELSE 2 END,
                'Infinity'), wide);
        ELSE
            known := privmax_tally(old->'state', price->>'epsilon')::text;
        END IF;
        RETURN new->'state' = old->'state' || jsonb_build_object(
                'epsilon', epsilon, 'delta', delta, 'tally', new->'state'->'tally')
                || CASE WHEN by_rho AND privmax_above(price->>'delta') > 0
                    THEN '{{"route": "tally"}}' ELSE '{{}}' END::jsonb
            AND new->'state'->>'tally' = known
            AND new->'spent'->>'delta' = privmax_share(delta, slack, wide)
            AND privmax_most(old->'spent'->>'epsilon', new->'spent'->>'epsilon');
    END $$;
CREATE OR REPLACE FUNCTION privmax_part(totals text, name text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE AS $$
    BEGIN RETURN CASE name
        WHEN 'whole' THEN substr(totals, strpos(totals, '"whole":') + 8,
            length(totals) - strpos(totals, '"whole":') - 8)
        WHEN 'account' THEN nullif(substr(totals, 12,
            greatest(strpos(totals, ',"whole":') - 12, 0)), '') END; END $$;
CREATE OR REPLACE FUNCTION privmax_joined(whole text, account text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE AS $$
    BEGIN RETURN '{{' || coalesce('"account":' || account || ',', '') || '"whole":' || whole ||
        '}}'; END $$;
CREATE OR REPLACE FUNCTION privmax_spend(before text, price jsonb) RETURNS text
    LANGUAGE plpgsql IMMUTABLE AS $$
    DECLARE
        wide numeric := {_WIDE};
        old jsonb := before::jsonb;
        unit text := price->>'unit';
        most_epsilon text := old->'budget'->>'epsilon';
        most_delta text := old->'budget'->>'delta';
        epsilon text := privmax_sum(old->'spent'->>'epsilon', price->>'epsilon', wide);
        delta text := privmax_share(old->'spent'->>'delta', price->>'delta', wide);
    BEGIN
        IF old->'state' = '{{}}' AND privmax_priced(price)
            AND coalesce(old->>'neighbors', price->>'neighbors') = price->>'neighbors'
            AND (old->>'neighbors' IS NULL OR old->>'unit' IS NOT DISTINCT FROM unit)
            AND privmax_most(epsilon, most_epsilon) AND privmax_most(delta, most_delta)
            AND privmax_number(epsilon) AND privmax_number(delta)
        THEN
            RETURN '{{"budget":{{"delta":"' || most_delta || '","epsilon":"' || most_epsilon
                || '"}},"neighbors":' || privmax_quoted(price->>'neighbors')
                || ',"spent":{{"delta":"' || delta || '","epsilon":"' || epsilon ||
                    '"}},"state":{{}}'
                || CASE WHEN unit IS NULL THEN '' ELSE ',"unit":' || privmax_quoted(unit) END ||
                    '}}';
        END IF;
        RETURN NULL;
    END $$;
CREATE OR REPLACE FUNCTION privmax_fits(total jsonb) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE STRICT AS $$
    BEGIN RETURN CASE WHEN privmax_exact(total->'spent') AND privmax_exact(total->'budget')
        THEN privmax_most(total->'spent'->>'epsilon', total->'budget'->>'epsilon')
            AND privmax_most(total->'spent'->>'delta', total->'budget'->>'delta')
        ELSE false END; END $$;
CREATE OR REPLACE FUNCTION privmax_totaled(total jsonb) RETURNS boolean
    LANGUAGE plpgsql STABLE AS $$
    BEGIN RETURN total - '{{budget,neighbors,spent,state,unit}}'::text[] = '{{}}'
        AND (total->'budget') - '{{epsilon,delta}}'::text[] = '{{}}'
        AND (total->'spent') - '{{epsilon,delta}}'::text[] = '{{}}'
        AND jsonb_typeof(total->'state') = 'object'
        AND total->'neighbors' IN ('null', '"add-remove"', '"replace"')
        AND (total->'unit' IS NULL OR privmax_label(total->>'unit', {LONGEST}))
        AND (total->'state' = '{{}}' OR privmax_exact(total->'state')
            AND privmax_number(total->'state'->>'slack') AND (
                CASE WHEN jsonb_typeof(total->'state'->'tally') = 'object'
                THEN NOT EXISTS (SELECT 1 FROM jsonb_object_keys(total->'state'->'tally') AS steps
                    WHERE NOT privmax_number(steps))
                ELSE privmax_number(total->'state'->>'tally') END)); END $$;
CREATE OR REPLACE FUNCTION privmax_spelled(given text) RETURNS boolean
    LANGUAGE plpgsql STABLE AS $$
    DECLARE shortest text;
    BEGIN
        IF given ~ '^(0|-{{0,1}}[1-9][0-9]*)$' THEN
            RETURN length(ltrim(given, '-')) <= {DIGITS};
        ELSIF length(given) > 30 OR given !~ '{_FLOAT}' OR given ~ '^-{{0,1}}0[.]0000' THEN
            RETURN false;
        END IF;
        shortest := given::double precision::text;
        RETURN shortest::numeric = given::numeric OR length(privmax_digits(given)) <
            length(privmax_digits(shortest));
    END $$;
CREATE OR REPLACE FUNCTION privmax_digits(given text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT btrim(regexp_replace(split_part(given, 'e', 1), '[-.]', '', 'g'), '0') $$;
CREATE OR REPLACE FUNCTION privmax_sorted(given json, deep integer) RETURNS boolean
    LANGUAGE plpgsql STABLE AS $$
    BEGIN
        IF deep < 1 THEN RETURN false; END IF;
        IF json_typeof(given) = 'array' THEN
            RETURN (SELECT coalesce(bool_and(privmax_sorted(value, deep - 1)), true)
                FROM json_array_elements(given) AS elements (value)
                WHERE json_typeof(value) IN ('object', 'array'));
        END IF;
        RETURN (SELECT coalesce(bool_and(coalesce(before < key, true) AND CASE
                WHEN json_typeof(value) IN ('object', 'array')
                THEN privmax_sorted(value, deep - 1) ELSE true END), true)
            FROM (SELECT key COLLATE "C" AS key, value,
                lag(key COLLATE "C") OVER (ORDER BY place) AS before
                FROM json_each(given) WITH ORDINALITY AS entries (key, value, place)) AS entries);
    END $$;
CREATE OR REPLACE FUNCTION privmax_canonical(given text) RETURNS boolean
    LANGUAGE plpgsql STABLE AS $$
    DECLARE bare text;
    BEGIN
        IF given ~ '[^ -~]' OR (strpos(given, '\\') > 0 AND given !~ '{_ESCAPED}') THEN
            RETURN false;
        END IF;
        bare := regexp_replace(given, '"([^"\\\\]|\\\\.)*"', '"', 'g');
        RETURN strpos(bare, ' ') = 0 AND left(given, 1) = '{{'
            AND (bare !~ '[0-9]' OR (SELECT bool_and(privmax_spelled(token[1]))
                FROM regexp_matches(bare, '(-{{0,1}}[0-9][-+.0-9a-zA-Z]*)', 'g') AS token))
            AND privmax_sorted(privmax_readable(given)::json, {DEEPEST});
    END $$;
CREATE OR REPLACE FUNCTION privmax_formed(event privmax_events) RETURNS boolean
    LANGUAGE plpgsql STABLE AS $$
    DECLARE
        body jsonb;
        part jsonb;
        day text := left(event.moment, 10);
    BEGIN
        IF octet_length(event.body) > {LARGEST} OR event.moment !~ '{MOMENT}'
            OR NOT privmax_label(event.ledger, {LONGEST}) OR NOT privmax_label(event.who, {LONGEST})
            OR NOT coalesce(privmax_label(event.request, {LONGEST}), true)
            OR NOT coalesce(privmax_label(event.account, {LONGEST}), true)
        THEN RETURN false; END IF;
        PERFORM make_date(split_part(day, '-', 1)::integer, split_part(day, '-', 2)::integer,
            split_part(day, '-', 3)::integer);
        IF NOT privmax_canonical(event.body) THEN RETURN false; END IF;
        body := privmax_json(event.body);
        part := body->'part';
        RETURN coalesce(CASE event.kind
            WHEN 'reserved' THEN jsonb_typeof(body->'what') = 'object'
                AND privmax_priced(body->'price')
            WHEN 'released' THEN body->'answer' IS NOT NULL
            WHEN 'granted' THEN privmax_exact(body->'more')
                AND jsonb_typeof(body->'why') = 'string' AND length(body->>'why') <= {REASON}
            WHEN 'account' THEN privmax_exact(body->'budget')
                AND jsonb_typeof(body->'why') = 'string' AND length(body->>'why') <= {REASON}
            ELSE jsonb_typeof(body->'name') = 'string' AND body->>'name' = event.ledger
                AND privmax_exact(body->'budget') AND body->'schema' = '{SCHEMA}'
                AND jsonb_typeof(body->'rule') = 'string' AND body->>'rule' IN ({_RULES})
                AND coalesce(jsonb_typeof(body->'id'), 'string') = 'string'
                AND coalesce(jsonb_typeof(body->'strict'), 'boolean') = 'boolean'
                AND (part IS NULL OR (jsonb_typeof(part->'whole') = 'string'
                    AND jsonb_typeof(part->'id') = 'string'
                    AND part->>'neighbors' IN ('add-remove', 'replace')
                    AND privmax_label(part->>'unit', {LONGEST})
                    AND part - '{{whole,id,neighbors,unit}}'::text[] = '{{}}'))
            END, false);
    END $$;
CREATE OR REPLACE FUNCTION privmax_hash(event privmax_events, before text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE AS $$
    BEGIN RETURN encode(sha256(convert_to('[' || concat_ws(',',
        privmax_quoted(before), privmax_quoted(event.ledger), event.seq::text,
        privmax_quoted(event.kind), privmax_quoted(event.moment), privmax_quoted(event.who),
        privmax_quoted(event.request), privmax_quoted(event.account), privmax_quoted(event.body),
        privmax_quoted(event.totals), '""') || ']', 'UTF8')), 'hex'); END $$;
CREATE OR REPLACE FUNCTION privmax_next(
    kind text, body text, account text, old privmax_events, own privmax_events) RETURNS text
    LANGUAGE plpgsql IMMUTABLE AS $$
    DECLARE
        price jsonb;
        whole text := privmax_part(old.totals, 'whole');
        part text := CASE WHEN account IS NOT NULL THEN privmax_part(own.totals, 'account') END;
    BEGIN
        IF (account IS NULL) <> (part IS NULL)
            OR concat(body, whole, part) ~ '\\\\u(0000|d[89a-f])' THEN RETURN NULL; END IF;
        IF kind = 'reserved' THEN
            price := body::jsonb->'price';
            whole := privmax_spend(whole, price);
            IF account IS NOT NULL THEN
                part := privmax_spend(part, price);
                IF part IS NULL THEN RETURN NULL; END IF;
            END IF;
        ELSIF kind <> 'released' OR NOT privmax_fits(whole::jsonb)
            OR NOT coalesce(privmax_fits(part::jsonb), true) THEN
            RETURN NULL;
        END IF;
        RETURN privmax_joined(whole, part);
    END $$;
CREATE OR REPLACE FUNCTION privmax_sound(
    event privmax_events, old privmax_events, own privmax_events) RETURNS boolean
    LANGUAGE plpgsql STABLE AS $$
    BEGIN
        RETURN getdatabaseencoding() = 'UTF8' AND event.seq = old.seq + 1
            AND event.totals = privmax_next(event.kind, event.body, event.account, old, own)
            AND event.hash = privmax_hash(event, old.hash);
    END $$;
CREATE OR REPLACE FUNCTION privmax_check() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        old privmax_events;
        own privmax_events;
        body jsonb;
        totals jsonb;
        part jsonb;
    BEGIN
        IF NEW.kind NOT IN ('created', 'reserved', 'released', 'granted', 'account')
            OR (NEW.kind = 'created') <> (NEW.seq = 1)
            OR (NEW.kind IN ('reserved', 'released')) <> (NEW.request IS NOT NULL)
        THEN RAISE EXCEPTION 'there is no such event'; END IF;
        IF NOT privmax_formed(NEW) THEN RAISE EXCEPTION 'an event has the form of its kind'; END IF;
        SELECT * INTO old FROM privmax_events WHERE ledger = NEW.ledger AND seq = NEW.seq - 1;
        IF old IS NULL AND NEW.seq > 1 THEN RAISE EXCEPTION 'an event follows the last one'; END IF;
        IF NEW.account IS NOT NULL THEN
            SELECT * INTO own FROM privmax_events WHERE ledger = NEW.ledger
                AND account = NEW.account AND seq < NEW.seq ORDER BY seq DESC LIMIT 1;
            IF (own IS NULL) <> (NEW.kind = 'account')
            THEN RAISE EXCEPTION 'an account is opened once'; END IF;
        END IF;
        IF NEW.kind = 'released' AND NOT EXISTS (SELECT 1 FROM privmax_events AS charged
            WHERE charged.ledger = NEW.ledger AND charged.request = NEW.request
            AND charged.kind = 'reserved' AND charged.who = NEW.who
            AND charged.account IS NOT DISTINCT FROM NEW.account)
        THEN RAISE EXCEPTION 'an answer is of whoever was charged'; END IF;
        IF privmax_sound(NEW, old, own) THEN RETURN NEW; END IF;
        IF getdatabaseencoding() = 'UTF8'
            AND NEW.hash <> privmax_hash(NEW, coalesce(old.hash, ''))
        THEN RAISE EXCEPTION 'the hash of an event is over it and the hash before it'; END IF;
        IF octet_length(NEW.totals) > {LARGEST} OR NOT privmax_canonical(NEW.totals)
        THEN RAISE EXCEPTION 'totals are written in one way'; END IF;
        body := privmax_json(NEW.body);
        totals := privmax_json(NEW.totals);
        IF NEW.totals ~ '"(epsilon|delta|slack|tally)":"[0-9/]*[^0-9/"]'
            OR totals->'whole' IS DISTINCT FROM privmax_json(privmax_part(NEW.totals, 'whole'))
            OR totals->'account' IS DISTINCT FROM privmax_json(privmax_part(NEW.totals, 'account'))
        THEN RAISE EXCEPTION 'totals are written in one way'; END IF;
        FOREACH part IN ARRAY ARRAY[totals->'whole', totals->'account'] LOOP
            IF part IS NOT NULL AND NOT coalesce(privmax_totaled(part), false)
            THEN RAISE EXCEPTION 'totals have one form'; END IF;
            IF part IS NOT NULL AND NOT coalesce(privmax_fits(part), false)
            THEN RAISE EXCEPTION 'no more is spent than was granted'; END IF;
        END LOOP;
        IF NEW.seq = 1 THEN
            IF totals->'whole'->'budget' <> body->'budget'
                OR totals->'whole'->'spent' <> '{{"epsilon": "0", "delta": "0"}}'
            THEN RAISE EXCEPTION 'a ledger begins with its budget, and nothing spent'; END IF;
            RETURN NEW;
        END IF;
        IF (NEW.account IS NULL) <> (totals->'account' IS NULL) OR NOT coalesce(privmax_follows(
            CASE WHEN NEW.kind = 'granted' AND NEW.account IS NOT NULL
                THEN 'released' ELSE NEW.kind END,
            body, privmax_json(old.totals)->'whole', totals->'whole'), false)
        THEN RAISE EXCEPTION 'totals follow from those before'; END IF;
        IF NEW.kind = 'account' AND (NOT privmax_exact(body->'budget')
            OR totals->'account'->'budget' <> body->'budget'
            OR totals->'account'->'spent' <> '{{"epsilon": "0", "delta": "0"}}')
        THEN RAISE EXCEPTION 'an account begins with its budget, and nothing spent'; END IF;
        IF NEW.kind <> 'account' AND NEW.account IS NOT NULL AND NOT coalesce(privmax_follows(
            NEW.kind, body, privmax_json(own.totals)->'account', totals->'account'), false)
        THEN RAISE EXCEPTION 'totals of an account follow from those before'; END IF;
        RETURN NEW;
    END $$;
CREATE OR REPLACE FUNCTION privmax_lock(given text) RETURNS TABLE (seq bigint, hash text)
    LANGUAGE plpgsql SECURITY DEFINER AS $$
    #variable_conflict use_column
    BEGIN RETURN QUERY SELECT seq, hash FROM privmax_ledgers WHERE name = given FOR UPDATE; END $$;
CREATE OR REPLACE FUNCTION privmax_append(
    ledger text, seq bigint, kind text, moment text, who text, request text, account text, body
        text, totals text,
    hash text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN INSERT INTO privmax_events VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10); END $$;
CREATE OR REPLACE FUNCTION privmax_look(given text, asked text[], own text[], seen bigint)
    RETURNS TABLE (
    told text, account_before bigint, seq bigint, kind text, moment text, who text, request text,
        account text,
    body text, totals text, hash text) LANGUAGE plpgsql AS $$
    #variable_conflict use_column
    DECLARE
        head bigint := (SELECT ledgers.seq FROM privmax_ledgers AS ledgers
            WHERE ledgers.name = given);
        part text := (SELECT account FROM privmax_events WHERE ledger = given AND seq = head);
        one text;
    BEGIN
        RETURN QUERY SELECT 'seq', NULL::bigint, seq, kind, moment, who, request, account, body,
            totals, hash
            FROM privmax_events WHERE ledger = given AND seq IN (head, head - 1, seen);
        IF part IS NOT NULL THEN
            RETURN QUERY SELECT 'account', head, seq, kind, moment, who, request, account, body,
                totals, hash
                FROM privmax_events WHERE ledger = given AND account = part AND seq < head
                    ORDER BY seq DESC LIMIT 1;
        END IF;
        RETURN QUERY SELECT 'request', NULL::bigint, seq, kind, moment, who, request, account,
            body, totals, hash
            FROM privmax_events WHERE ledger = given AND request = ANY (asked)
                AND kind IN ('reserved', 'released');
        FOREACH one IN ARRAY own LOOP
            RETURN QUERY SELECT 'account', NULL::bigint, seq, kind, moment, who, request, account,
                body, totals, hash
                FROM privmax_events WHERE ledger = given AND account = one
                    ORDER BY seq DESC LIMIT 1;
        END LOOP;
    END $$;
CREATE OR REPLACE FUNCTION privmax_write(
    given text, kind text, moment text, who text, request text, account text, body text,
    known text, seen bigint, seen_hash text, charged_hash text) RETURNS SETOF privmax_events
    LANGUAGE plpgsql AS $$
    DECLARE
        head record;
        old privmax_events;
        older privmax_events;
        own privmax_events;
        other privmax_events;
        made privmax_events;
        found text;
    BEGIN
        PERFORM set_config('synchronous_commit', 'off', true),
            set_config('lock_timeout', '{PATIENCE}s', true);
        SELECT * INTO head FROM privmax_lock(given);
        SELECT * INTO old FROM privmax_events WHERE ledger = given AND seq = head.seq;
        SELECT hash INTO found FROM privmax_events AS events WHERE events.ledger = given
            AND events.request = $5 AND events.kind = 'reserved';
        IF getdatabaseencoding() <> 'UTF8' OR old.hash IS DISTINCT FROM head.hash
            OR found IS DISTINCT FROM charged_hash OR (kind = 'reserved') <> (found IS NULL)
            OR (kind = 'released' AND EXISTS (SELECT 1 FROM privmax_events AS events
                WHERE events.ledger = given AND events.request = $5 AND events.kind = 'released'))
            OR (seen > 0 AND seen <> head.seq AND NOT EXISTS (SELECT 1 FROM privmax_events AS events
                WHERE events.ledger = given AND events.seq = seen AND events.hash = seen_hash))
            OR (seen = head.seq AND seen_hash <> head.hash)
        THEN RETURN; END IF;
        IF account IS NOT NULL THEN
            SELECT * INTO own FROM privmax_events AS events WHERE events.ledger = given
                AND events.account = $6 ORDER BY events.seq DESC LIMIT 1;
        END IF;
        SELECT * INTO older FROM privmax_events WHERE ledger = given AND seq = head.seq - 1;
        IF old.hash IS DISTINCT FROM known
            OR old.hash <> privmax_hash(old, coalesce(older.hash, '')) THEN
            IF old.account IS NOT NULL THEN
                SELECT * INTO other FROM privmax_events AS events WHERE events.ledger = given
                    AND events.account = old.account AND events.seq < head.seq
                    ORDER BY events.seq DESC LIMIT 1;
            END IF;
            IF NOT coalesce(privmax_sound(old, older, other), false) THEN RETURN; END IF;
        END IF;
        made := (given, head.seq + 1, kind, moment, who, request, account, body,
            privmax_next(kind, body, account, old, own), '');
        IF made.totals IS NULL THEN RETURN; END IF;
        made.hash := privmax_hash(made, old.hash);
        PERFORM privmax_append(made.ledger, made.seq, made.kind, made.moment, made.who,
            made.request, made.account, made.body, made.totals, made.hash);
        RETURN NEXT old;
        RETURN NEXT older;
        RETURN NEXT own;
        RETURN NEXT other;
        RETURN NEXT made;
    END $$;
CREATE OR REPLACE FUNCTION privmax_blockers()
    RETURNS TABLE (pid integer, who text, since timestamptz, waits boolean)
    LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN RETURN QUERY SELECT sessions.pid, sessions.usename::text, sessions.xact_start,
            cardinality(pg_blocking_pids(sessions.pid)) > 0
        FROM pg_stat_activity AS sessions
        WHERE sessions.pid <> pg_backend_pid() AND sessions.datname = current_database()
            AND EXISTS (SELECT 1 FROM pg_locks AS locks
                WHERE locks.pid = sessions.pid AND locks.granted AND (
                    (locks.relation IN ('privmax_ledgers'::regclass, 'privmax_events'::regclass)
                        AND locks.mode <> 'AccessShareLock')
                    OR (locks.locktype = 'advisory' AND locks.objid = {MAKING})))
        ORDER BY 4, 3, 1;
    END $$;
CREATE OR REPLACE FUNCTION privmax_unblock(given integer) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN
        IF NOT EXISTS (SELECT 1 FROM privmax_blockers() AS sessions WHERE sessions.pid = given)
        THEN RETURN false; END IF;
        RETURN pg_terminate_backend(given);
    END $$;
REVOKE EXECUTE ON FUNCTION privmax_lock, privmax_append, privmax_blockers, privmax_unblock
    FROM PUBLIC;
DO $$
    DECLARE
        path text := format('SET search_path = pg_catalog, %I, pg_temp', (
            SELECT nspname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
            WHERE pg_class.oid = 'privmax_events'::regclass));
        name text;
    BEGIN
        FOR name IN SELECT oid::regprocedure::text FROM pg_proc
            WHERE proname IN ('privmax_check', 'privmax_lock', 'privmax_look', 'privmax_append',
                'privmax_write', 'privmax_blockers', 'privmax_unblock') AND pronamespace = (
                SELECT relnamespace FROM pg_class WHERE oid = 'privmax_events'::regclass)
        LOOP EXECUTE format('ALTER FUNCTION %s %s', name, path); END LOOP;
        ALTER FUNCTION privmax_check() SET extra_float_digits = 1;
    END $$;
DROP TRIGGER IF EXISTS privmax_events_check ON privmax_events;
CREATE TRIGGER privmax_events_check BEFORE INSERT ON privmax_events FOR EACH ROW EXECUTE FUNCTION
    privmax_check();
"""
"""No question marks, which are holes of a query (`postgres._placed`).

Text in which PostgreSQL reads no JSON (NUL, halves of surrogate pairs) is left out of what is
compared. Escaped backslashes are set aside meanwhile: u0000 behind one is text.

The search path of the functions is fixed: whoever may make temporary tables could else show them
their own. It holds within all that these call, so those that only compute go without, and are
quicker for it. What is not a mere expression is PL/pgSQL: PostgreSQL keeps its plans from one
transaction to the next, and makes those of SQL functions again."""
