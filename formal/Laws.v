(* The laws as a program: Coq's extraction turns the definitions that the theorems are about into
   OCaml, which computes their values in rational numbers.

   laws.ml prints them for all scores from 0 to 3 of four candidates, and formal/laws.txt holds what
   it printed; tests/exact/test_formal.py computes the same values in Python. *)
From Privmax Require Import Prelude Definitions Scores Exponential RestrictedExponential.
From Privmax Require Import LimitedDomain NestedMargin NoisyMaximum GapTest SetMargin.
From Coq Require Import Extraction ExtrOcamlBasic ExtrOcamlNatInt.

(* Numbers a reader can follow: t = 2, delta = 1/10, rho = 1/2, u = 2, v = 3. *)
Definition ratio (a b : nat) : rat := a%:R / b%:R.
Definition parts (x : rat) : int * int := (numq x, denq x).

Section Values.
Variable s : seq nat.
Let q : 'I_4 -> int := fun i => (nth 0%N s i)%:Z.
Let t : rat := 2%:R.
Let delta : rat := ratio 1 10.

Definition one_of (f : 'I_4 -> rat) : seq (int * int) := [seq parts (f i) | i <- enum 'I_4].
Definition one_or_none (f : option 'I_4 -> rat) : seq (int * int) :=
  rcons (one_of (fun i => f (Some i))) (parts (f None)).

(* The six sets of two. *)
Definition pair_of (f : {set 'I_4} -> rat) : seq (int * int) :=
  [seq parts (f [set nth ord0 (enum 'I_4) p.1; nth ord0 (enum 'I_4) p.2])
    | p <- [:: (0, 1); (0, 2); (0, 3); (1, 2); (1, 3); (2, 3)]%N].

Definition value_exponential := one_of (exponential t q).
Definition value_restricted := one_of (restricted t 2 q).
Definition value_limited_domain := one_or_none (limited_domain t 2 2 delta q).
Definition value_limited_domain_clipped :=
  one_or_none (limited_domain_clipped t 1 2 delta 2 0 1 q).

Let ranks (j : 'I_3) : nat := nth 0%N [:: 1; 2; 4]%N j.
Let deltas (j : 'I_3) : rat := nth 0 [:: delta; delta; 0] j.

Definition value_nested_margin := one_or_none (nested_margin t 1 ranks 4 deltas (ratio 1 2) q).
Definition value_nested_margin_growth :=
  one_or_none (nested_margin_growth t 1 ranks 4 deltas (ratio 1 2) 2 1 q).

Definition value_gap_test :=
  [seq parts (gap_test t delta 1 2 q o) | o <- [:: Some (top q 2); None]].
Definition value_best_set :=
  rcons (pair_of (best_set 4%:R t delta 1 2 q)) (parts (best_silence 4%:R t delta 1 2 q)).

(* Sets of one and of two of the first three candidates: sums over sets take their time. *)
Let q3 : 'I_3 -> int := fun i => (nth 0%N s i)%:Z.
Let alone (f : {set 'I_3} -> rat) : seq (int * int) := [seq parts (f [set i]) | i <- enum 'I_3].
Let without (f : {set 'I_3} -> rat) : seq (int * int) :=
  [seq parts (f (~: [set i])) | i <- enum 'I_3].

Definition value_set_stage :=
  rcons (alone (set_release t 3%:R 1 1 2 1 1 id delta q3))
    (parts (set_silence t 3%:R 1 1 2 1 1 id delta q3)).
Definition value_everybody := without (everybody t 3%:R 2 q3).

End Values.

Definition value_laplace (k : nat) := [seq parts (f (- k%:Z)) | f <-
  [:: laplace (ratio 1 2); laplace_cdf (ratio 1 2)]].

Extract Inductive nat => "Stdlib.Int.t" [ "0" "Stdlib.Int.succ" ]
  "(fun zero succ n -> if n = 0 then zero () else succ (n - 1))".
(* Division as OCaml has it: that of the library subtracts one by one. *)
Extract Constant edivn => "(fun m d -> if d = 0 then (0, m) else (m / d, m mod d))".
Extract Constant gcdn => "(let rec gcd m n = if n = 0 then m else gcd n (m mod n) in gcd)".
Extract Constant pred_of_argType => "(fun _ -> true)".
Extraction Inline predT.
Extraction "values.ml" value_exponential value_restricted value_limited_domain
  value_limited_domain_clipped value_nested_margin value_nested_margin_growth value_gap_test
  value_best_set value_set_stage value_everybody value_laplace.
