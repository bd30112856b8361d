(* The restricted exponential mechanism.

   Page: docs/proofs/restricted-exponential.md.

   l is public, H and H' are the top l of D and D'. The margin gap_l >= c + (c/epsilon) ln(l/beta)
   says l t^c <= beta t^gap_l, where t = exp(epsilon / c). *)
From Privmax Require Import Prelude Definitions Scores Exponential.

Section RestrictedExponential.
Variables (R : realFieldType) (I : finType) (t : R) (c : int) (l : nat).
Hypotheses (t1 : 1 <= t) (c0 : 0 <= c) (l0 : (0 < l)%N).
Implicit Types (q : I -> int) (i : I).

(* "Draw among the top l candidates with probability proportional to exp(epsilon q_i / c)." *)
Definition restricted q i : R :=
  if i \in top q l then weight t q i / \sum_(j in top q l) weight t q j else 0.

(* "gap_r = q_(1) - q_(r+1)" *)
Definition gap q (r : nat) : int := stat q 0 - stat q r.

Definition has_margin (beta : R) q : Prop := l%:R * t ^ c <= beta * t ^ gap q l.

Let w0 q i : 0 < weight t q i. Proof. exact: weight_gt0. Qed.
Let p0 n : 0 < t ^ n. Proof. exact: power_gt0. Qed.

(* "N is made of order statistics, which move like scores (Fact 1)." *)
Lemma total_top q : (l <= #|I|)%N -> \sum_(j in top q l) weight t q j = \sum_(r < l) t ^ stat q r.
Proof. by move=> lK; rewrite (sum_top q (fun n => t ^ n)). Qed.

Lemma total_top_within lo q q' : (l <= #|I|)%N -> moves lo c q q' ->
  within (t ^ lo) (t ^ c) (\sum_(j in top q l) weight t q j) (\sum_(j in top q' l) weight t q' j).
Proof.
move=> lK nb; rewrite !total_top //; apply: within_sum => r _.
by apply: power_within => //; apply: stat_moves => //; apply: leq_trans lK.
Qed.

(* "N' >= exp(epsilon q'_(1) / c)" *)
Lemma total_top_ge q : (l <= #|I|)%N -> t ^ stat q 0 <= \sum_(j in top q l) weight t q j.
Proof.
move=> lK; rewrite total_top // -(prednK l0) big_ord_recl /= ler_addl.
by apply: sumr_ge0 => r _; apply/ltW/p0.
Qed.

Lemma total_top_gt0 q : (l <= #|I|)%N -> 0 < \sum_(j in top q l) weight t q j.
Proof. by move=> lK; apply: lt_le_trans (total_top_ge q lK). Qed.

Lemma restricted_ge0 q i : (l <= #|I|)%N -> 0 <= restricted q i.
Proof.
by move=> lK; rewrite /restricted; case: ifP => // _; rewrite divr_ge0 ?ltW ?total_top_gt0.
Qed.

Theorem restricted_law q : (l <= #|I|)%N -> is_law (restricted q).
Proof.
move=> lK; split=> [i|]; first exact: restricted_ge0.
rewrite /restricted -big_mkcond /= -big_distrl /= divff // gt_eqF //.
exact: total_top_gt0.
Qed.

(* "Common candidates. P(i) and P'(i) are within e^epsilon of each other." *)
Lemma common lo q q' i : (l <= #|I|)%N -> moves lo c q q' -> i \in top q l -> i \in top q' l ->
  restricted q i <= t ^ c * restricted q' i.
Proof.
move=> lK nb iH iH'; rewrite /restricted iH iH'.
apply: (within_ratio (p0 lo)); rewrite ?ltW ?total_top_gt0 ?p0 //.
  exact: weight_within.
exact: total_top_within.
Qed.

(* A candidate whose score is not above q_(1) - (gap_l - c) has probability at most beta/l. *)
Lemma low_chance beta q i (m : int) : (l < #|I|)%N -> l%:R * t ^ c <= beta * t ^ m ->
  q i <= stat q 0 - m + c -> restricted q i <= beta / l%:R.
Proof.
move=> lK margin le; have lK' := ltnW lK.
have lR : 0 < l%:R :> R by rewrite ltr0n.
have b0 : 0 <= beta.
  rewrite -(pmulr_lge0 _ (p0 m)); apply: le_trans margin.
  by rewrite mulr_ge0 ?ler0n ?ltW.
rewrite /restricted; case: ifP => _; last by rewrite divr_ge0 ?ler0n.
rewrite ler_pdivl_mulr // mulrAC ler_pdivr_mulr ?total_top_gt0 //.
apply: (le_trans _ (ler_wpmul2l b0 (total_top_ge q lK'))).
rewrite mulrC /weight; apply: (@le_trans _ _ (l%:R * t ^ (stat q 0 - m + c))).
  by apply: ler_wpmul2l; rewrite ?ler0n // ler_weexpz2l.
rewrite addrC !power_add // mulrA.
apply: (@le_trans _ _ (beta * t ^ m * (t ^ stat q 0 * t ^ (- m)))).
  by apply: ler_wpmul2r => //; rewrite mulr_ge0 ?ltW.
by rewrite mulrCA -!mulrA -[t ^ m * _]power_add // subrr expr0z mulr1 mulrC.
Qed.

(* "Candidates that slip, D to D'. There are at most l of them." *)
Lemma slip_chance beta q q' : drift c q q' -> (l < #|I|)%N -> has_margin beta q ->
  Pr (restricted q) (top q l :\: top q' l) <= beta.
Proof.
move=> [lo nb] lK margin.
have lR : 0 < l%:R :> R by rewrite ltr0n.
apply: (@le_trans _ _ (\sum_(i in top q l :\: top q' l) beta / l%:R)).
  apply: ler_sum => i; rewrite inE => /andP[iH' iH].
  apply: low_chance margin _ => //; apply: (le_trans (slip_le nb lK iH iH')).
  by rewrite ler_add2r /gap opprB addrC subrK.
have b0 : 0 <= beta.
  rewrite -(pmulr_lge0 _ (p0 (gap q l))); apply: le_trans margin.
  by rewrite mulr_ge0 ?ler0n ?ltW.
rewrite big_const iter_addr_0 -[X in _ <= X](divfK (negbT (gt_eqF lR))) mulr_natr.
apply: ler_wpmuln2l; first by rewrite divr_ge0 ?ler0n.
by rewrite -[X in (_ <= X)%N](card_top q (ltnW lK)) subset_leq_card ?subsetDl.
Qed.

(* "The other direction. If i is in H' and not in H then q_i <= q_(l+1) = q_(1) - gap_l." *)
Lemma slip_chance_back beta q q' : drift c q q' -> (l < #|I|)%N -> has_margin beta q ->
  Pr (restricted q') (top q' l :\: top q l) <= beta.
Proof.
move=> [lo nb] lK margin.
have lR : 0 < l%:R :> R by rewrite ltr0n.
have b0 : 0 <= beta.
  rewrite -(pmulr_lge0 _ (p0 (gap q l))); apply: le_trans margin.
  by rewrite mulr_ge0 ?ler0n ?ltW.
apply: (@le_trans _ _ (\sum_(i in top q' l :\: top q l) beta / l%:R)).
  apply: ler_sum => i; rewrite inE => /andP[iH iH'].
  apply: low_chance margin _ => //.
  have low : q i <= stat q 0 - gap q l by rewrite /gap opprB addrC subrK; apply: out_top_le.
  have K0 : (0 < #|I|)%N by apply: leq_ltn_trans lK.
  have /andP[_ i2] := nb i; have /andP[s1 _] := stat_moves nb K0.
  rewrite ler_subl_addr in i2; rewrite ler_subr_addr in s1.
  apply: (le_trans i2); apply: (@le_trans _ _ (lo + c + (stat q 0 - gap q l))).
    by rewrite ler_add2l.
  by rewrite -addrA [c + _]addrC !addrA !ler_add2r.
rewrite big_const iter_addr_0 -[X in _ <= X](divfK (negbT (gt_eqF lR))) mulr_natr.
apply: ler_wpmuln2l; first by rewrite divr_ge0 ?ler0n.
by rewrite -[X in (_ <= X)%N](card_top q' (ltnW lK)) subset_leq_card ?subsetDl.
Qed.

(* "Let D have the margin. Then for every neighbor D' and every set S, P_D(S) <= e^epsilon P_D'(S) +
   beta and P_D'(S) <= e^epsilon P_D(S) + beta. The margin is asked of D alone." *)
Theorem restricted_exponential_close beta q q' :
  (l < #|I|)%N -> drift c q q' -> has_margin beta q ->
  close (restricted q) (restricted q') (t ^ c) beta /\
  close (restricted q') (restricted q) (t ^ c) beta.
Proof.
move=> lK nb margin; have lK' := ltnW lK.
have ge0 e i : 0 <= restricted e i by apply: restricted_ge0.
split.
  apply: (close_but_for (B := top q l :\: top q' l)) => // [|i|].
  - exact/ltW/p0.
  - rewrite inE negb_and negbK; case: (boolP (i \in top q l)) => [iH|iH _] /=.
      by rewrite orbF => iH'; case: nb => lo nb; apply: (common lK' nb).
    by rewrite {1}/restricted (negbTE iH) mulr_ge0 // ltW.
  - exact: slip_chance.
apply: (close_but_for (B := top q' l :\: top q l)) => // [|i|].
- exact/ltW/p0.
- rewrite inE negb_and negbK; case: (boolP (i \in top q' l)) => [iH'|iH' _] /=.
    by rewrite orbF => iH; case: (drift_sym nb) => lo nb'; apply: (common lK' nb').
  by rewrite {1}/restricted (negbTE iH') mulr_ge0 // ltW.
- exact: slip_chance_back.
Qed.

End RestrictedExponential.
