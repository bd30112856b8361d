(* The exponential mechanism.

   Page: docs/proofs/exponential.md.

   w_i = exp(epsilon q_i / c) is t ^ q_i with t = exp(epsilon / c) >= 1, so e^epsilon is t ^ c. With
   sensitivity s the exponent is epsilon q_i / (c s) and scores drift by c s: put c s for c. *)
From Privmax Require Import Prelude Definitions Scores.

Section Within.
Variable R : realFieldType.
Implicit Types A r x y : R.

(* x' lies between A x and A r x. All that moves by a factor in one interval [A, A r] stays within r
   of everything else that does. *)
Definition within A r x x' : Prop := A * x <= x' /\ x' <= A * r * x.

Lemma within_scale A r k x x' : 0 <= k -> within A r x x' -> within A r (k * x) (k * x').
Proof. by move=> k0 [l h]; split; rewrite mulrCA; apply: ler_wpmul2l. Qed.

Lemma within_add A r x x' y y' : within A r x x' -> within A r y y' -> within A r (x + y) (x' + y').
Proof. by move=> [lx hx] [ly hy]; split; rewrite mulrDr; apply: ler_add. Qed.

(* "A sum of positive terms, each of which moves by a factor within e^I, moves by such a factor." *)
Lemma within_sum A r (T : finType) (P : pred T) (F F' : T -> R) :
  (forall i, P i -> within A r (F i) (F' i)) ->
    within A r (\sum_(i | P i) F i) (\sum_(i | P i) F' i).
Proof. by move=> w; split; rewrite big_distrr; apply: ler_sum => i /w[]. Qed.

Lemma within_max A r x x' y y' : 0 <= A -> 0 <= r -> within A r x x' -> within A r y y' ->
  within A r (Num.max x y) (Num.max x' y').
Proof.
move=> A0 r0 [lx hx] [ly hy]; split.
  by rewrite maxr_pmulr // le_maxl !le_maxr lx ly orbT.
by rewrite maxr_pmulr ?mulr_ge0 // le_maxl !le_maxr hx hy orbT.
Qed.

Lemma within_gt0 A r x x' : 0 < A -> within A r x x' -> 0 < x -> 0 < x'.
Proof. by move=> A0 [l _] x0; apply: lt_le_trans l; rewrite mulr_gt0. Qed.

Lemma within_ratio A r x x' y y' : 0 < A -> 0 <= x -> 0 < y -> 0 < y' -> 0 <= r ->
  within A r x x' -> within A r y y' -> x / y <= r * (x' / y').
Proof.
move=> A0 x0 y0 y'0 r0 [lx _] [_ hy].
rewrite mulrA ler_pdivr_mulr // mulrAC ler_pdivl_mulr //.
apply: (le_trans (ler_wpmul2l x0 hy)).
rewrite [X in X <= _](_ : _ = r * (A * x) * y);
  last by rewrite !mulrA [x * A]mulrC [A * x * r]mulrAC [A * r]mulrC mulrAC.
by apply: ler_wpmul2r; [apply: ltW | apply: ler_wpmul2l].
Qed.

End Within.

Section Exponential.
Variables (R : realFieldType) (I : finType) (t : R) (c : int).
Hypotheses (t1 : 1 <= t) (c0 : 0 <= c).
Implicit Types (q : I -> int) (i : I).

Definition weight q i : R := t ^ q i.

(* "Draw i with probability proportional to exp(epsilon q_i / c)." *)
Definition exponential q i : R := weight q i / \sum_j weight q j.

Let t0 : 0 < t. Proof. exact: lt_le_trans t1. Qed.

Lemma power_gt0 (n : int) : 0 < t ^ n. Proof. exact: exprz_gt0. Qed.

Lemma weight_gt0 q i : 0 < weight q i. Proof. exact: power_gt0. Qed.

Lemma power_add (m n : int) : t ^ (m + n) = t ^ m * t ^ n.
Proof. by rewrite expfzDr // gt_eqF. Qed.

Lemma power_within lo (x x' : int) : lo <= x' - x <= lo + c ->
  within (t ^ lo) (t ^ c) (t ^ x) (t ^ x').
Proof.
case/andP=> l h; split; rewrite -!power_add; apply: ler_weexpz2l => //.
  by rewrite -ler_subr_addr.
by rewrite -ler_subl_addr.
Qed.

(* "Every exponent moves by at most epsilon / 2" (c = 2), or "w_i <= w_i' <= e^epsilon w_i" (c = 1):
   all weights move by a factor in one interval. *)
Lemma weight_within lo q q' i : moves lo c q q' ->
  within (t ^ lo) (t ^ c) (weight q i) (weight q' i).
Proof. by move=> nb; apply: power_within. Qed.

Lemma total_gt0 q : (0 < #|I|)%N -> 0 < \sum_i weight q i.
Proof.
move=> K0; have [i _] : exists i : I, true.
  by case: (pickP (mem I)) => [i _|/eq_card0 K00]; [exists i | rewrite K00 in K0].
rewrite (bigD1 i) //=; apply: ltr_paddr; last exact: weight_gt0.
by apply: sumr_ge0 => j _; apply/ltW/weight_gt0.
Qed.

Theorem exponential_law q : (0 < #|I|)%N -> is_law (exponential q).
Proof.
move=> K0; split=> [i|].
  by rewrite divr_ge0 ?ltW ?weight_gt0 ?total_gt0.
by rewrite -big_distrl /= divff // gt_eqF ?total_gt0.
Qed.

(* "Statement. This is (epsilon, 0)-differentially private." *)
Theorem exponential_private : (0 < #|I|)%N -> private (@drift I c) exponential (t ^ c) 0.
Proof.
move=> K0 q q' [lo nb]; apply: pointwise_close => i.
apply: (within_ratio (power_gt0 lo)).
- exact/ltW/weight_gt0.
- exact: total_gt0.
- exact: total_gt0.
- exact/ltW/power_gt0.
- exact: weight_within.
- by apply: within_sum => j _; apply: weight_within.
Qed.

End Exponential.

(* The two relations of the page, with t = exp(epsilon / 2) and t = exp(epsilon). *)
Theorem exponential_replace (R : realFieldType) (I : finType) (t : R) : 1 <= t -> (0 < #|I|)%N ->
  private (@replace I) (exponential t) (t ^+ 2) 0.
Proof.
by move=> t1 K0 q q' /replace_drift nb; apply: (exponential_private (c := 2) t1).
Qed.

Theorem exponential_add_remove (R : realFieldType) (I : finType) (t : R) : 1 <= t -> (0 < #|I|)%N ->
  private (@add_remove I) (exponential t) t 0.
Proof.
move=> t1 K0 q q' /add_remove_drift nb S.
by have := exponential_private (c := 1) t1 K0 nb S; rewrite expr1z.
Qed.

(* Clipping first: "a mechanism that is private for all scores of that sensitivity is private when
   it is run on q~ in place of q". *)
Theorem clipped_private (R : realFieldType) (I O : finType) (M : (I -> int) -> O -> R) (c W : int)
    (k : nat) (r delta : R) : (k < #|I|)%N ->
  private (@drift I c) M r delta -> private (@drift I c) (fun q => M (clip W k q)) r delta.
Proof.
by move=> kK priv q q' [lo nb]; apply: priv; exists lo; apply: clip_moves.
Qed.

Theorem clipped_countably_private (R : realFieldType) (I : finType) (O : eqType)
    (M : (I -> int) -> O -> R) (s W : int) (k : nat) (r delta : R) : (k < #|I|)%N ->
  countably_private (@replace_by I s) M r delta ->
  countably_private (@replace_by I s) (fun q => M (clip W k q)) r delta.
Proof. by move=> kK priv q q' nb; apply: priv; apply: clip_replace. Qed.

(* Random ties. "If ties are broken by a uniformly random order that is not released, the
   inequalities are averages of those above." Every order is that of the theorems after candidates
   have been given other names: name t is one way to do so, relabel t takes the names back, and p t
   is its probability. *)
Theorem random_ties (R : realFieldType) (I O T : finType) (M : (I -> int) -> O -> R)
    (name : T -> I -> I) (relabel : T -> O -> O) (p : T -> R) (c : int) (r delta : R) :
  is_law p -> private (@drift I c) M r delta ->
  private (@drift I c)
    (mixture p (fun t q => post M (relabel t) (fun i => q (name t i)))) r delta.
Proof.
move=> law priv; apply: hidden_coin => // t q q' [lo nb]; apply: post_close; apply: priv.
by exists lo => i; apply: nb.
Qed.

(* The same where there are countably many outcomes; unlabel t o is what o is called after
   naming. *)
Theorem countable_random_ties (R : realFieldType) (I T : finType) (O : eqType)
    (M : (I -> int) -> O -> R) (name : T -> I -> I) (unlabel : T -> O -> O) (p : T -> R) (s : int)
    (r delta : R) :
  0 <= r -> is_law p -> (forall t, injective (unlabel t)) -> (forall q o, 0 <= M q o) ->
  countably_private (@replace_by I s) M r delta ->
  countably_private (@replace_by I s)
    (fun q o => \sum_t p t * M (fun i => q (name t i)) (unlabel t o)) r delta.
Proof.
move=> r0 [p0 p1] inj M0 priv; apply: finite_sets_suffice => // q q' nb os us.
rewrite exchange_big /= [X in _ <= r * X + _]exchange_big /=.
rewrite -[delta]mul1r -p1 big_distrr big_distrl /= -big_split /=; apply: ler_sum => t _.
rewrite -!big_distrr /= mulrCA -mulrDr; apply: ler_wpmul2l => //.
have near : replace_by s (fun i => q (name t i)) (fun i => q' (name t i)) by move=> i; apply: nb.
have uu : uniq (map (unlabel t) os) by rewrite map_inj_uniq.
by have := countable_finite M0 priv near uu; rewrite !big_map.
Qed.
