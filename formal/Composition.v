(* Basic composition.

   Page: docs/proofs/README.md ("Basic composition"). The bounds by range and by concentration of
   docs/proofs/composition.md are not here. *)
From Privmax Require Import Prelude Definitions.

Section Composition.
Variables (R : realFieldType) (D : Type) (neighbors : D -> D -> Prop) (O1 O2 : finType).

(* Run M1, then M2 on the same data and the outcome of M1; release both. *)
Definition compose (M1 : D -> O1 -> R) (M2 : O1 -> D -> O2 -> R) : D -> O1 * O2 -> R := fun d o =>
  M1 d o.1 * M2 o.1 d o.2.

(* The outcomes of M2 that a set S of pairs holds with o. *)
Definition slice (S : {set O1 * O2}) (o : O1) : {set O2} := [set o2 | (o, o2) \in S].

Lemma Pr_compose M1 M2 d (S : {set O1 * O2}) :
  Pr (compose M1 M2 d) S = \sum_o M1 d o * Pr (M2 o d) (slice S o).
Proof.
rewrite /Pr /compose; under [RHS]eq_bigr do rewrite big_distrr /=.
rewrite pair_big_dep /=; apply: eq_bigl => -[o o2] /=.
by rewrite inE.
Qed.

(* "If M1 is (epsilon1, delta1) and M2(., o) is (epsilon2, delta2) for every outcome o of M1,
   releasing both is (epsilon1 + epsilon2, delta1 + delta2)." *)
Theorem basic_composition M1 M2 r1 r2 delta1 delta2 :
  0 <= r1 -> 0 <= r2 -> 0 <= delta2 ->
  (forall d, is_law (M1 d)) -> (forall o d, is_law (M2 o d)) ->
  private neighbors M1 r1 delta1 -> (forall o, private neighbors (M2 o) r2 delta2) ->
  private neighbors (compose M1 M2) (r1 * r2) (delta1 + delta2).
Proof.
move=> r10 r20 d20 law1 law2 priv1 priv2 d d' nb S; rewrite !Pr_compose.
have [p0 p1] := law1 d; have [p'0 p'1] := law1 d'.
pose f o := Num.min 1 (r2 * Pr (M2 o d') (slice S o)).
have pr0 o e : 0 <= Pr (M2 o e) (slice S o) by apply: Pr_ge0 => o2; case: (law2 o e).
have f01 o : 0 <= f o <= 1 by rewrite /f le_minr ler01 mulr_ge0 //= le_minl lexx.
apply: (@le_trans _ _ (\sum_o M1 d o * f o + delta2)).
  rewrite -[delta2]mul1r -p1 big_distrl /= -big_split /=; apply: ler_sum => o _.
  rewrite -mulrDr; apply: ler_wpmul2l => //; rewrite /f addr_minl le_minr.
  by rewrite priv2 // andbT (le_trans (Pr_le1 _ (law2 o d))) // ler_addl.
rewrite addrA ler_add2r.
apply: (le_trans (close_mean r10 p'0 (priv1 _ _ nb) f01)).
rewrite ler_add2r -mulrA; apply: ler_wpmul2l => //.
rewrite big_distrr /=; apply: ler_sum => o _.
by rewrite mulrCA; apply: ler_wpmul2l => //; rewrite /f le_minl lexx orbT.
Qed.

End Composition.
