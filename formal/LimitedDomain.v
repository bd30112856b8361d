(* Limited domain, and any guard that outweighs whoever could slip.

   Page: docs/proofs/limited-domain.md. The threshold is not needed as a number: the guard weighs
   exp(epsilon threshold / c) = (k/delta) t^c t^q_(k+1), t = exp(epsilon / c). *)
From Privmax Require Import Prelude Definitions Scores Exponential RestrictedExponential.

Section Guarded.
Variables (R : realFieldType) (I : finType) (t : R) (c : int).
Hypotheses (t1 : 1 <= t).
Implicit Types (q : I -> int) (i : I) (l : nat) (g : R).

(* N = the sum of exp(epsilon q_(r) / c) over r <= l, and the guard. *)
Definition total q l g : R := \sum_(i in top q l) weight t q i + g.

(* "Draw among the top l candidates, each with weight exp(epsilon q_i / c), and nothing (None) with
   weight g." *)
Definition guarded q l g (o : option I) : R :=
  match o with
  | Some i => if i \in top q l then weight t q i / total q l g else 0
  | None => g / total q l g
  end.

Let w0 q i : 0 < weight t q i. Proof. exact: weight_gt0. Qed.
Let p0 n : 0 < t ^ n. Proof. exact: power_gt0. Qed.

Lemma sum_weight_ge0 q (S : {set I}) : 0 <= \sum_(i in S) weight t q i.
Proof. by apply: sumr_ge0 => i _; apply/ltW/w0. Qed.

Lemma total_pos q l g : 0 < g -> 0 < total q l g.
Proof. by move=> g0; rewrite /total ltr_spaddr // sum_weight_ge0. Qed.

Lemma guarded_ge0 q l g o : 0 <= g -> 0 < total q l g -> 0 <= guarded q l g o.
Proof.
move=> g0 N0; case: o => [i|] /=; last by rewrite divr_ge0 // ltW.
by case: ifP => // _; rewrite divr_ge0 // ltW.
Qed.

Lemma sum_option (V : zmodType) (F : option I -> V) : \sum_o F o = F None + \sum_i F (Some i).
Proof.
rewrite (bigD1 None) //=; congr (_ + _).
rewrite (reindex_omap (fun i => Some i) id) //=; last by case.
by apply: eq_bigl => i; rewrite eqxx.
Qed.

Lemma guarded_law q l g : 0 <= g -> 0 < total q l g -> is_law (guarded q l g).
Proof.
move=> g0 N0; split=> [o|]; first exact: guarded_ge0.
rewrite sum_option /= -big_mkcond /= -big_distrl /= -mulrDl addrC -/(total q l g).
by rewrite divff // gt_eqF.
Qed.

Lemma total_within lo q q' l g g' : (l <= #|I|)%N -> moves lo c q q' ->
  within (t ^ lo) (t ^ c) g g' -> within (t ^ lo) (t ^ c) (total q l g) (total q' l g').
Proof.
move=> lK nb wg; apply: within_add => //; rewrite !(sum_top _ (fun n => t ^ n)) //.
apply: within_sum => r _; apply: power_within => //; apply: stat_moves => //.
exact: leq_trans lK.
Qed.

(* The common part of the page's proofs. The guard g moves like the weights, and those of the top l
   who are not in the top l of the neighbor weigh at most delta times the guard. *)
Theorem guarded_close lo delta q q' l g g' :
  (l <= #|I|)%N -> moves lo c q q' -> 0 <= g -> 0 < total q l g -> 0 <= g' -> 0 < total q' l g' ->
  within (t ^ lo) (t ^ c) g g' ->
  \sum_(i in top q l :\: top q' l) weight t q i <= delta * g -> 0 <= delta ->
  close (guarded q l g) (guarded q' l g') (t ^ c) delta.
Proof.
move=> lK nb g0 N0 g'0 N'0 wg slip d0.
have wN := total_within lK nb wg.
pose B := [set o : option I | if o is Some i then (i \in top q l) &&
  (i \notin top q' l) else false].
apply: (close_but_for (B := B)) => [||o||].
- exact/ltW/p0.
- by move=> o; apply: guarded_ge0.
- case: o => [i|] /=; last by move=> _; apply: (within_ratio (p0 lo)); rewrite // ltW.
  rewrite inE; case: (boolP (i \in top q l)) => [iH|iH _] /=.
    by rewrite negbK => -> ; apply: (within_ratio (p0 lo)); rewrite ?ltW //; apply: weight_within.
  by case: ifP => _; rewrite ?mulr0 // mulr_ge0 ?divr_ge0 ?ltW.
- by move=> o; apply: guarded_ge0.
rewrite /Pr big_mkcond sum_option /= inE add0r.
apply: (@le_trans _ _ (\sum_(i in top q l :\: top q' l) weight t q i / total q l g)).
  rewrite [X in _ <= X]big_mkcond; apply: ler_sum => i _ /=.
  by rewrite !inE andbC; case: ifP => // /andP[_ ->].
rewrite -big_distrl /= ler_pdivr_mulr //; apply: (le_trans slip).
by apply: ler_wpmul2l => //; rewrite /total ler_addr sum_weight_ge0.
Qed.

End Guarded.

Section LimitedDomain.
Variables (R : realFieldType) (I : finType) (t : R) (c : int) (k : nat) (delta : R).
Hypotheses (t1 : 1 <= t) (k0 : (0 < k)%N) (kK : (k < #|I|)%N) (d0 : 0 < delta).
Implicit Types (q : I -> int) (i : I).

Let w0 q i : 0 < weight t q i. Proof. exact: weight_gt0. Qed.
Let p0 n : 0 < t ^ n. Proof. exact: power_gt0. Qed.

(* (n/delta) t^c t^q_(k+1): n candidates that slip. *)
Definition guard (n : nat) q : R := n%:R / delta * t ^ c * t ^ stat q k.

Lemma guard_gt0 n q : (0 < n)%N -> 0 < guard n q.
Proof. by move=> n0; rewrite !mulr_gt0 ?invr_gt0 ?ltr0n. Qed.

Lemma guard_within n lo q q' : moves lo c q q' -> within (t ^ lo) (t ^ c) (guard n q) (guard n q').
Proof.
move=> nb; apply: within_scale.
  by rewrite !mulr_ge0 ?invr_ge0 ?ler0n ?ltW.
by apply: power_within => //; apply: stat_moves.
Qed.

(* "P(i) <= exp(epsilon q_i / c) / g <= delta / k": at most n of them weigh delta times the
   guard. *)
Lemma slip_weight n lo q q' (S : {set I}) : moves lo c q q' ->
  S \subset top q k :\: top q' k -> (#|S| <= n)%N ->
  \sum_(i in S) weight t q i <= delta * guard n q.
Proof.
move=> nb sub few.
apply: (@le_trans _ _ (\sum_(i in S) t ^ (stat q k + c))).
  apply: ler_sum => i /(subsetP sub); rewrite inE => /andP[iH' iH].
  by apply: ler_weexpz2l => //; apply: (slip_le nb kK iH iH').
rewrite big_const iter_addr_0.
apply: (@le_trans _ _ (t ^ (stat q k + c) *+ n)).
  by apply: ler_wpmuln2l => //; apply/ltW/p0.
rewrite /guard !mulrA [delta * _]mulrC mulfK ?gt_eqF // power_add // -mulr_natl.
by rewrite [t ^ stat q k * _]mulrC mulrA.
Qed.

(* "draw among the top k candidates, each with weight exp(epsilon q_i / c), and nothing with weight
   exp(epsilon threshold / c)" *)
Definition limited_domain q : option I -> R := guarded t q k (guard k q).

Theorem limited_domain_law q : is_law (limited_domain q).
Proof.
have g0 := guard_gt0 q k0.
by apply: (guarded_law t1); [apply: ltW | apply: (total_pos t1)].
Qed.

(* "Statement. For public k this is (epsilon, delta)-differentially private." *)
Theorem limited_domain_private : private (@drift I c) limited_domain (t ^ c) delta.
Proof.
move=> q q' [lo nb]; apply: (guarded_close t1 (ltnW kK) nb);
  rewrite ?(total_pos t1) ?(ltW (guard_gt0 _ _)) ?guard_gt0 ?(ltW d0) //.
  exact: guard_within.
apply: (slip_weight nb (subxx _)).
by rewrite -[X in (_ <= X)%N](card_top q (ltnW kK)) subset_leq_card ?subsetDl.
Qed.

(* Growth, without clipping: "the guard may then use min(k, kappa') / delta in place of k / delta".
   One record touches at most kappa candidates; kappa' = kappa under add-remove, 2 kappa under
   replace. *)
Definition grows (n : nat) q q' : Prop := (#|touched q q'| <= n)%N.

Theorem limited_domain_growth (n : nat) : (0 < n)%N ->
  private (fun q q' => drift c q q' /\ grows n q q')
    (fun q => guarded t q k (guard (minn k n) q)) (t ^ c) delta.
Proof.
move=> n0 q q' [[lo nb] few]; have m0 : (0 < minn k n)%N by rewrite leq_min k0.
apply: (guarded_close t1 (ltnW kK) nb); rewrite ?(total_pos t1) ?(ltW (guard_gt0 _ _)) ?guard_gt0
  ?(ltW d0) //.
  exact: guard_within.
apply: (slip_weight nb (subxx _)); rewrite leq_min.
rewrite (leq_trans (growth_bounds_slips q q' k) few) andbT.
by rewrite -[X in (_ <= X)%N](card_top q (ltnW kK)) subset_leq_card ?subsetDl.
Qed.

(* Growth with clipping. "So the guard gets a second term. With f the floor of the clip: g = (min(k,
   kappa')/delta) exp((epsilon/c)(q_(k+1) + c)) + (k/delta) exp((epsilon/c)(f + c))." q is not
   clipped here; the scores of the draw are clip W r q. *)
Variables (W : int) (r : nat).
Hypothesis rK : (r < #|I|)%N.

Definition floor q : int := stat q r - W.
(* The second term of the guard. *)
Definition floor_term q : R := k%:R / delta * t ^ c * t ^ floor q.
Definition floor_guard (n : nat) q : R := guard (minn k n) (clip W r q) + floor_term q.
Definition limited_domain_clipped (n : nat) q : option I -> R :=
  guarded t (clip W r q) k (floor_guard n q).

(* "A candidate above the floor has the same candidates before it whether scores are clipped or
   not." *)
Lemma clip_above q i : floor q < clip W r q i -> clip W r q i = q i.
Proof. by rewrite /clip /floor lt_maxr ltxx orbF => /ltW /max_l. Qed.

Lemma clip_before q i j : floor q < clip W r q i -> before (clip W r q) i j = before q i j.
Proof.
move=> above; have ei := clip_above above; rewrite ei in above.
rewrite /before ei; case: (ltP (floor q) (q j)) => [gt|le].
  by have -> : clip W r q j = q j by apply/max_l/ltW.
have -> : clip W r q j = floor q by apply: max_r.
by rewrite above (le_lt_trans le above).
Qed.

Lemma rank_card q i : rank q i = #|[set j | ~~ before q i j]|.
Proof.
rewrite -{1}(card_top q (ltnW (rank_lt q i))); apply: eq_card => j.
by rewrite !inE before_rank -ltnNge.
Qed.

Lemma clip_rank q i : floor q < clip W r q i -> rank (clip W r q) i = rank q i.
Proof.
move=> above; rewrite !rank_card; apply: eq_card => j.
by rewrite !inE clip_before.
Qed.

Lemma floor_moves lo q q' : moves lo c q q' -> lo <= floor q' - floor q <= lo + c.
Proof. by move=> nb; rewrite /floor opprB addrA subrK; apply: stat_moves. Qed.

Lemma floor_term_gt0 q : 0 < floor_term q.
Proof. by rewrite !mulr_gt0 ?invr_gt0 ?ltr0n. Qed.

Lemma floor_term_within lo q q' : moves lo c q q' ->
  within (t ^ lo) (t ^ c) (floor_term q) (floor_term q').
Proof.
move=> nb; apply: within_scale; first by rewrite !mulr_ge0 ?invr_ge0 ?ler0n ?ltW.
by apply: power_within => //; apply: floor_moves.
Qed.

(* "Let i be in H but not in H'. (B) If q~_i <= f + c, then P(i) g <= exp((epsilon/c)(f + c)), and
   there are at most k such i. (A) Otherwise q_i = q~_i > f + c, and i is above the floor in D' too:
   the floor and q_i drift apart by at most c. So i slips also in the unclipped order, and there are
   at most kappa' such i." *)
Lemma clipped_slip (n : nat) lo q q' : 0 <= c -> moves lo c q q' -> grows n q q' ->
  \sum_(i in top (clip W r q) k :\: top (clip W r q') k) weight t (clip W r q) i <=
  delta * floor_guard n q.
Proof.
move=> c0 nb few; have nbc := clip_moves W rK nb; have fnb := floor_moves nb.
set S := _ :\: _; pose B := [set i in S | clip W r q i <= floor q + c].
rewrite (big_setID B) /= addrC mulrDr; apply: ler_add.
  apply: (slip_weight nbc); first exact: subsetDl.
  rewrite leq_min; apply/andP; split.
    rewrite -[X in (_ <= X)%N](card_top (clip W r q) (ltnW kK)) subset_leq_card //.
    by apply: subset_trans (subsetDl _ _) (subsetDl _ _).
  apply: (leq_trans _ (leq_trans (growth_bounds_slips q q' k) few)).
  apply: subset_leq_card; apply/subsetP => i; rewrite !inE => /andP[].
  move=> nB /andP[iH' iH].
  have high : floor q + c < clip W r q i by move: nB; rewrite iH' iH /= -ltNge.
  have high' : floor q' < clip W r q' i.
    have /andP[i1 _] := nbc i; case/andP: fnb => _.
    rewrite ler_subl_addr => fle; apply: (le_lt_trans fle).
    rewrite ler_subr_addr in i1; apply: lt_le_trans i1.
    by rewrite -addrA ltr_add2l addrC.
  rewrite -(clip_rank high') iH' /= -(clip_rank (q := q)) //.
  by apply: le_lt_trans high; rewrite ler_addl.
rewrite (_ : S :&: B = B); last by apply/setIidPr/subsetP => i; rewrite inE => /andP[].
apply: (@le_trans _ _ (\sum_(i in B) t ^ (floor q + c))).
  by apply: ler_sum => i; rewrite inE => /andP[_ le]; apply: ler_weexpz2l.
rewrite big_const iter_addr_0; apply: (@le_trans _ _ (t ^ (floor q + c) *+ k)).
  apply: ler_wpmuln2l; first exact/ltW/p0.
  rewrite -[X in (_ <= X)%N](card_top (clip W r q) (ltnW kK)) subset_leq_card //.
  by apply/subsetP => i; rewrite inE => /andP[]; rewrite inE => /andP[].
rewrite /floor_term !mulrA [delta * _]mulrC mulfK ?gt_eqF // power_add // -mulr_natl.
by rewrite [t ^ floor q * _]mulrC mulrA.
Qed.

Lemma floor_guard_gt0 n q : (0 < n)%N -> 0 < floor_guard n q.
Proof. by move=> n0; rewrite addr_gt0 ?floor_term_gt0 ?guard_gt0 // leq_min k0. Qed.

Theorem limited_domain_clipped_private (n : nat) : 0 <= c -> (0 < n)%N ->
  private (fun q q' => drift c q q' /\ grows n q q') (limited_domain_clipped n) (t ^ c) delta.
Proof.
move=> c0 n0 q q' [[lo nb] few]; have nbc := clip_moves W rK nb; have g0 e := floor_guard_gt0 e n0.
apply: (guarded_close t1 (ltnW kK) nbc); rewrite ?(total_pos t1) ?(ltW (g0 _)) ?(ltW d0) //.
  by apply: within_add; [apply: guard_within | apply: floor_term_within].
exact: clipped_slip.
Qed.

End LimitedDomain.
