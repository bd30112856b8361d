(* The nested margin mechanism.

   Page: docs/proofs/nested-margin.md. t = exp(epsilon^ / c), so e^epsilon^ is t ^ c and e^epsilon =
   e^epsilon^ / (1 - rho) is t ^ c / (1 - rho). *)
From Privmax Require Import Prelude Definitions Scores Exponential RestrictedExponential
  LimitedDomain.

Section Largest.
Variables (R : realFieldType) (T : finType).

(* The largest of some numbers that are not negative; 0 where there are none. *)
Definition largest (P : pred T) (F : T -> R) : R := \big[Num.max/0]_(j | P j) F j.

Lemma le_largest (P : pred T) (F : T -> R) j : P j -> F j <= largest P F.
Proof.
rewrite /largest => Pj; have : j \in index_enum T by rewrite mem_index_enum.
elim: (index_enum T) => // a s IH; rewrite inE big_cons => /orP[/eqP<-|js].
  by rewrite Pj le_maxr lexx.
by case: ifP => _; rewrite ?le_maxr IH ?orbT.
Qed.

Lemma largest_attained (P : pred T) (F : T -> R) :
  largest P F = 0 \/ exists2 j, P j & largest P F = F j.
Proof.
rewrite /largest; elim/big_rec: _ => [|j x Pj IH]; first by left.
by rewrite /Num.max; case: ifP => _ //; right; exists j.
Qed.

Lemma largest_ge0 (P : pred T) (F : T -> R) : (forall j, P j -> 0 <= F j) -> 0 <= largest P F.
Proof. by move=> F0; case: (largest_attained P F) => [->|[j Pj ->]] //; apply: F0. Qed.

End Largest.

Section Nested.
Variables (R : realFieldType) (I : finType) (t : R) (c : int) (J : nat).
(* Public ranks l_1 < ... < l_J (their order is not needed), the last of them L; guards; delta_j;
   rho. *)
Variables (l : 'I_J -> nat) (L : nat) (g : 'I_J -> (I -> int) -> R) (delta : 'I_J -> R) (rho : R).
(* The scores as they are used, clipped or not; and which data are neighbors, with scores that move
   from lo on. *)
Variables (scores : (I -> int) -> I -> int) (near : int -> (I -> int) -> (I -> int) -> Prop).
Hypothesis near_moves : forall lo q q', near lo q q' -> moves lo c (scores q) (scores q').
Hypotheses (t1 : 1 <= t) (J0 : (0 < J)%N).
Hypotheses (l_pos : forall j, (0 < l j)%N) (l_le : forall j, (l j <= L)%N) (LK : (L <= #|I|)%N).
Hypotheses (d0 : forall j, 0 <= delta j) (rho0 : 0 <= rho) (rho1 : rho < 1).
Implicit Types (q : I -> int) (i : I).
Local Notation top' q := (top (scores q)).
Local Notation w q := (weight t (scores q)).

(* What the proof needs of the guards. The first three: M_j, with rank l_j and guard g_j, is the
   limited domain mechanism at (epsilon^, delta_j). The last: "the others, of ranks l_k + 1 to l_J,
   are offered in all at most rho g_k / N_k". *)
Hypothesis g0 : forall j q, 0 <= g j q.
Hypothesis g_within : forall j lo q q', near lo q q' -> within (t ^ lo) (t ^ c) (g j q) (g j q').
Hypothesis g_slip : forall j lo q q', near lo q q' ->
  \sum_(i in top' q (l j) :\: top' q' (l j)) w q i <= delta j * g j q.
Hypothesis g_others : forall j q, \sum_(i in top' q L :\: top' q (l j)) w q i <= rho * g j q.

(* "N_j = the sum of w_i over H_j, and g_j" *)
Definition N j q : R := total t (scores q) (l j) (g j q).

(* "P(i) = w_i / min{N_j : i in H_j}, 0 if i is in no H_j": the largest of the offers w_i / N_j. *)
Definition offer q i : R := largest (fun j => i \in top' q (l j)) (fun j => w q i / N j q).

(* "P(nothing) = 1 - the sum of P(i)" *)
Definition nested q (o : option I) : R := if o is Some i then offer q i else 1 - \sum_i offer q i.

Let w0 q i : 0 < w q i. Proof. exact: weight_gt0. Qed.
Let p0 n : 0 < t ^ n. Proof. exact: power_gt0. Qed.
Let lK j : (l j <= #|I|)%N. Proof. exact: leq_trans LK. Qed.

Lemma N_gt0 j q : 0 < N j q.
Proof.
rewrite /N /total; apply: ltr_paddr => //.
exact: (total_top_gt0 t1 (l_pos j) (scores q) (lK j)).
Qed.

Lemma offer_ge0 q i : 0 <= offer q i.
Proof. by apply: largest_ge0 => j _; rewrite divr_ge0 ?ltW ?N_gt0. Qed.

(* "Every i in H_k has P(i) >= w_i / N_k." *)
Lemma offer_ge j q i : guarded t (scores q) (l j) (g j q) (Some i) <= offer q i.
Proof.
rewrite /=; case: ifP => [iH|_]; last exact: offer_ge0.
exact: (le_largest (fun j => w q i / N j q) iH).
Qed.

(* "Sets of candidates. If i is in H_j' too, P'(i) >= w_i'/N_j' >= e^-epsilon^ P(i). If not, i slips
   out of the top l_j." *)
Lemma offer_slip lo q q' i : near lo q q' ->
  offer q i <= t ^ c * offer q' i +
    \sum_j (if i \in top' q (l j) :\: top' q' (l j) then w q i / N j q else 0).
Proof.
move=> nb; have mv := near_moves nb.
have terms0 j : 0 <= (if i \in top' q (l j) :\: top' q' (l j) then w q i / N j q else 0).
  by case: ifP => // _; rewrite divr_ge0 ?ltW ?N_gt0.
case: (largest_attained (fun j => i \in top' q (l j)) (fun j => w q i / N j q)).
  rewrite -/(offer q i) => ->; apply: addr_ge0; last exact: sumr_ge0.
  by rewrite mulr_ge0 ?offer_ge0 ?ltW.
case=> j iH; rewrite -/(offer q i) => ->.
case: (boolP (i \in top' q' (l j))) => iH'.
  rewrite -[X in X <= _]addr0; apply: ler_add; last exact: sumr_ge0.
  apply: (@le_trans _ _ (t ^ c * (w q' i / N j q'))).
    apply: (within_ratio (p0 lo)); rewrite ?ltW ?N_gt0 //; first exact: weight_within.
    by apply: total_within => //; apply: g_within.
  apply: ler_wpmul2l; first exact/ltW/p0.
  exact: (le_largest (fun j => w q' i / N j q') iH').
rewrite -[X in X <= _]add0r; apply: ler_add.
  by rewrite mulr_ge0 ?offer_ge0 ?ltW.
rewrite (bigD1 j) //= inE iH iH' /= ler_addl.
by apply: sumr_ge0 => j' _; apply: terms0.
Qed.

(* "So P(S) <= e^epsilon^ P'(S) + the sum of delta_j for every set S of candidates." *)
Lemma candidates_close lo q q' (S : {set I}) : near lo q q' ->
  \sum_(i in S) offer q i <= t ^ c * (\sum_(i in S) offer q' i) + \sum_j delta j.
Proof.
move=> nb; rewrite big_distrr /=.
apply: (le_trans (ler_sum _ (fun i _ => offer_slip i nb))).
rewrite big_split /= ler_add2l exchange_big /=; apply: ler_sum => j _.
rewrite -big_mkcondr /=.
apply: (@le_trans _ _ (\sum_(i in top' q (l j) :\: top' q' (l j)) w q i / N j q)).
  rewrite [X in X <= _]big_mkcond [X in _ <= X]big_mkcond; apply: ler_sum => i _.
  case: (i \in S) => //=; case: ifP => // _; by rewrite divr_ge0 ?ltW ?N_gt0.
rewrite -big_distrl /= ler_pdivr_mulr ?N_gt0 //; apply: (le_trans (g_slip j nb)).
by apply: ler_wpmul2l => //; rewrite /N /total ler_addr sum_weight_ge0.
Qed.

(* The rank with the least N_k. *)
Definition least q : 'I_J := [arg min_(k < Ordinal J0) N k q]%O.

Lemma least_le q j : N (least q) q <= N j q.
Proof. by rewrite /least; case: Order.TotalTheory.arg_minP => // k _; apply. Qed.

(* "On D', everybody in H_k' has P'(i) = w_i'/N_k'. The others are offered at most w_i'/N_k'
   each." *)
Lemma offer_le q i :
  offer q i <= guarded t (scores q) (l (least q)) (g (least q) q) (Some i) +
    (if i \in top' q L :\: top' q (l (least q)) then w q i / N (least q) q else 0).
Proof.
set k := least q.
case: (largest_attained (fun j => i \in top' q (l j)) (fun j => w q i / N j q)).
  rewrite -/(offer q i) => ->; apply: addr_ge0.
    by rewrite /=; case: ifP => // _; rewrite divr_ge0 // ltW // N_gt0.
  by case: ifP => // _; rewrite divr_ge0 // ltW // N_gt0.
case=> j iH; rewrite -/(offer q i) => ->.
have le : w q i / N j q <= w q i / N k q.
  by apply: ler_wpmul2l; [apply/ltW/w0 | rewrite lef_pinv ?posrE ?N_gt0 // least_le].
rewrite /=; case: (boolP (i \in top' q (l k))) => iHk.
  by rewrite inE iHk /= addr0.
by rewrite inE iHk (subsetP (top_sub (scores q) (l_le j)) i iH) /= add0r.
Qed.

(* "F'(T) >= (1 - rho) M_k'(T^c)", where F(T) = 1 - the sum of P(i) over T, and M_k(T^c) is 1 - the
   sum of what M_k gives to T. *)
Lemma left_ge q (T : {set I}) :
  (1 - rho) * (1 - \sum_(i in T) guarded t (scores q) (l (least q)) (g (least q) q) (Some i)) <=
  1 - \sum_(i in T) offer q i.
Proof.
set k := least q; set M := fun i => guarded t (scores q) (l k) (g k q) (Some i).
have sumM : \sum_(i in T) M i + g k q / N k q <= 1.
  have [ge0 <-] := guarded_law t1 (g0 k q) (N_gt0 k q).
  rewrite sum_option addrC ler_add2l [X in _ <= X](bigID (mem T)) /= ler_addl.
  by apply: sumr_ge0 => i _; apply: (ge0 (Some i)).
have others : \sum_(i in T) offer q i <= \sum_(i in T) M i + rho * (g k q / N k q).
  apply: (le_trans (ler_sum _ (fun i _ => offer_le q i))).
  rewrite big_split /= ler_add2l -big_mkcondr /=.
  apply: (@le_trans _ _ (\sum_(i in top' q L :\: top' q (l k)) w q i / N k q)).
    rewrite [X in X <= _]big_mkcond [X in _ <= X]big_mkcond; apply: ler_sum => i _.
    by case: (i \in T) => //=; case: ifP => // _; rewrite divr_ge0 ?ltW ?N_gt0.
  by rewrite -big_distrl /= mulrA ler_pdivr_mulr ?N_gt0 // divfK ?gt_eqF ?N_gt0.
apply: (@le_trans _ _ (1 - (\sum_(i in T) M i + rho * (g k q / N k q)))); last first.
  by rewrite ler_add2l ler_opp2.
rewrite mulrBl mul1r opprD addrA ler_add2l ler_opp2.
by apply: ler_wpmul2l => //; rewrite ler_subr_addl.
Qed.

(* "P'(nothing) >= 0, so on every data set the P(i) add up to at most 1." *)
Theorem offers_le1 q : \sum_i offer q i <= 1.
Proof.
rewrite -subr_ge0; have := left_ge q setT.
rewrite (eq_bigl xpredT) => [|i]; last by rewrite inE.
rewrite [X in _ <= 1 - X](eq_bigl xpredT) => [|i]; last by rewrite inE.
apply: le_trans; apply: mulr_ge0; first by rewrite subr_ge0 ltW.
have [ge0 sum1] := guarded_law t1 (g0 (least q) q) (N_gt0 (least q) q).
by rewrite -sum1 sum_option addrK.
Qed.

Theorem nested_law q : is_law (nested q).
Proof.
split=> [[i|]|] /=; first exact: offer_ge0; first by rewrite subr_ge0 offers_le1.
by rewrite sum_option /= subrK.
Qed.

(* The sets of outcomes with nothing in them: all but a set of candidates T. *)
Definition all_but (T : {set I}) : {set option I} :=
  [set o | if o is Some i then i \notin T else true].

Lemma Pr_all_but (p : option I -> R) (T : {set I}) : \sum_o p o = 1 ->
  Pr p (all_but T) = 1 - \sum_(i in T) p (Some i).
Proof.
move=> <-; rewrite sum_option /Pr big_mkcond sum_option /= inE /=.
rewrite [X in _ = _ + X - _](bigID (mem T)) /= addrC -addrA [X in _ = _ + X]addrAC subrr add0r.
rewrite addrC; congr (_ + _); rewrite [RHS]big_mkcond; apply: eq_bigr => i _.
by rewrite inE.
Qed.

(* "F(T) <= M_k(T^c), and M_k(T^c) <= e^epsilon^ M_k'(T^c) + delta_k: the limited domain mechanism.
   Together F(T) <= e^epsilon^/(1 - rho) F'(T) + delta_k." *)
Lemma left_close lo q q' (T : {set I}) : near lo q q' ->
  1 - \sum_(i in T) offer q i <=
  t ^ c / (1 - rho) * (1 - \sum_(i in T) offer q' i) + \sum_j delta j.
Proof.
move=> nb; pose k := least q'.
have M e := guarded_law t1 (g0 k e) (N_gt0 k e).
apply: (@le_trans _ _ (Pr (guarded t (scores q) (l k) (g k q)) (all_but T))).
  rewrite Pr_all_but; last by case: (M q).
  by rewrite ler_add2l ler_opp2; apply: ler_sum => i _; apply: offer_ge.
have cl := guarded_close t1 (lK k) (near_moves nb) (g0 k q) (N_gt0 k q) (g0 k q') (N_gt0 k q')
  (g_within k nb) (g_slip k nb) (d0 k).
apply: (le_trans (cl (all_but T))); apply: ler_add; last first.
  by rewrite (bigD1 k) //= ler_addl; apply: sumr_ge0.
rewrite Pr_all_but; last by case: (M q').
rewrite -mulrA; apply: ler_wpmul2l; first exact/ltW/p0.
rewrite mulrC ler_pdivl_mulr ?subr_gt0 // mulrC.
exact: left_ge.
Qed.

(* "Statement. The mechanism is (epsilon, delta)-differentially private." *)
Theorem nested_close :
  private (fun q q' => exists lo, near lo q q') nested (t ^ c / (1 - rho)) (\sum_j delta j).
Proof.
move=> q q' [lo nb] S; have [_ sum1] := nested_law q; have [_ sum1'] := nested_law q'.
case: (boolP (None \in S)) => noneS.
  have -> : S = all_but [set i | Some i \notin S].
    by apply/setP => -[i|]; rewrite !inE ?negbK ?noneS.
  rewrite !Pr_all_but //; exact: left_close nb.
have eq e : Pr (nested e) S = \sum_(i in [set i | Some i \in S]) offer e i.
  rewrite /Pr big_mkcond sum_option (negbTE noneS) add0r [RHS]big_mkcond.
  by apply: eq_bigr => i _; rewrite inE.
rewrite !eq; apply: (le_trans (candidates_close _ nb)); rewrite ler_add2r.
apply: ler_wpmul2r; first by apply: sumr_ge0 => i _; apply: offer_ge0.
rewrite ler_pdivl_mulr ?subr_gt0 //.
rewrite -[X in _ <= X]mulr1; apply: ler_wpmul2l; first exact/ltW/p0.
by rewrite ler_subl_addl ler_addr.
Qed.

End Nested.

(* The guards of the page, without growth and with it. *)
Section NestedMargin.
Variables (R : realFieldType) (I : finType) (t : R) (c : int) (J : nat).
Variables (l : 'I_J -> nat) (L : nat) (delta : 'I_J -> R) (rho : R).
Hypotheses (t1 : 1 <= t) (J0 : (0 < J)%N).
Hypotheses (l_pos : forall j, (0 < l j)%N) (l_le : forall j, (l j <= L)%N) (LK : (L <= #|I|)%N).
Hypotheses (rho0 : 0 < rho) (rho1 : rho < 1).
(* "In a closed universe only ranks below K are guarded; if K <= l_J, the last rank is K with g = 0
   and delta_J = 0." *)
Hypotheses (d0 : forall j, 0 <= delta j) (d_pos : forall j, (l j < #|I|)%N -> 0 < delta j).
Implicit Types (q : I -> int) (i : I).

Let p0 n : 0 < t ^ n. Proof. exact: power_gt0. Qed.

(* "w_(l_j+1) max(l_j e^epsilon^ / delta_j, (l_J - l_j) / rho)", with n for the l_j of the first
   term: how many can slip. *)
Definition ring_guard (n : nat) j q : R :=
  if (l j < #|I|)%N then
    Num.max (n%:R * t ^ c / delta j) ((L - l j)%:R / rho) * t ^ stat q (l j)
  else 0.

Lemma ring_factor_ge0 n j : 0 <= Num.max (n%:R * t ^ c / delta j) ((L - l j)%:R / rho).
Proof. by rewrite le_maxr [X in _ || X]divr_ge0 ?ler0n ?orbT ?(ltW rho0). Qed.

Lemma ring_guard_ge0 n j q : 0 <= ring_guard n j q.
Proof.
by rewrite /ring_guard; case: ifP => // _; rewrite mulr_ge0 ?ring_factor_ge0 ?(ltW (p0 _)).
Qed.

Lemma ring_guard_within n j lo q q' : moves lo c q q' ->
  within (t ^ lo) (t ^ c) (ring_guard n j q) (ring_guard n j q').
Proof.
move=> nb; rewrite /ring_guard; case: ifP => [lK|_].
  apply: within_scale; first exact: ring_factor_ge0.
  by apply: power_within => //; apply: stat_moves.
by split; rewrite mulr0.
Qed.

Lemma ring_guard_ge n j q : (l j < #|I|)%N -> guard t c (l j) (delta j) n q <= ring_guard n j q.
Proof.
move=> lK; rewrite /ring_guard lK; apply: ler_wpmul2r; first exact/ltW/p0.
by rewrite le_maxr mulrAC lexx.
Qed.

Lemma ring_guard_others n j q :
  \sum_(i in top q L :\: top q (l j)) weight t q i <= rho * ring_guard n j q.
Proof.
rewrite /ring_guard; case: ifPn => [lK|]; last first.
  rewrite -leqNgt => Kl; rewrite (top_all q Kl) setDT big_set0.
  by rewrite mulr0.
apply: (@le_trans _ _ (\sum_(i in top q L :\: top q (l j)) t ^ stat q (l j))).
  apply: ler_sum => i; rewrite inE => /andP[iH _]; apply: ler_weexpz2l => //.
  exact: out_top_le.
rewrite big_const iter_addr_0 cardsD (setIidPr (top_sub q (l_le j))) !card_top //; last exact: ltnW.
rewrite -mulr_natl mulrA; apply: ler_wpmul2r; first exact/ltW/p0.
rewrite -ler_pdivr_mull // mulrC.
by rewrite le_maxr lexx orbT.
Qed.

(* "g_j = w_(l_j+1) max(l_j e^epsilon^ / delta_j, (l_J - l_j) / rho)" *)
Definition nested_guard j q : R := ring_guard (l j) j q.

Definition nested_margin : (I -> int) -> option I -> R := nested t l nested_guard id.

Lemma nested_guard_slip j lo q q' : moves lo c q q' ->
  \sum_(i in top q (l j) :\: top q' (l j)) weight t q i <= delta j * nested_guard j q.
Proof.
move=> nb; case: (ltnP (l j) #|I|) => [lK|Kl]; last first.
  by rewrite !top_all // setDv big_set0 mulr_ge0 ?ring_guard_ge0.
have few : (#|top q (l j) :\: top q' (l j)| <= l j)%N.
  by rewrite -[X in (_ <= X)%N](card_top q (ltnW lK)) subset_leq_card ?subsetDl.
apply: (le_trans (slip_weight t1 lK (d_pos lK) nb (subxx _) few)).
by apply: ler_wpmul2l => //; apply: ring_guard_ge.
Qed.

Theorem nested_margin_offers_le1 q : \sum_i offer t l nested_guard id q i <= 1.
Proof.
apply: (@offers_le1 _ _ t _ l L _ rho id t1 J0 l_pos l_le LK (ltW rho0) rho1) => j e.
  exact: ring_guard_ge0.
exact: ring_guard_others.
Qed.

(* e^epsilon^ = t ^ c, and e^epsilon = e^epsilon^ / (1 - rho); delta = delta_1 + ... + delta_J. *)
Theorem nested_margin_private :
  private (@drift I c) nested_margin (t ^ c / (1 - rho)) (\sum_j delta j).
Proof.
apply: (@nested_close _ _ t c _ _ L _ _ _ _ (fun lo => moves lo c)) => //; first exact: ltW.
- by move=> j q; apply: ring_guard_ge0.
- by move=> j; apply: ring_guard_within.
- exact: nested_guard_slip.
- by move=> j q; apply: ring_guard_others.
Qed.

(* "Growth. With at most kappa' candidates slipping, min(l_j, kappa') may take the place of l_j in
   the first term, and the floor's term (l_j e^epsilon^ / delta_j) exp(epsilon^ (q_(1) - W)/c) is
   added to g_j. The second term stays: it is not about slipping." n is kappa'; scores are clipped
   at W below the best. *)
Variables (W : int) (n : nat).
Hypotheses (c0 : 0 <= c) (n0 : (0 < n)%N).

Definition growth_guard j q : R :=
  ring_guard (minn (l j) n) j (clip W 0 q) +
  (if (l j < #|I|)%N then floor_term t c (l j) (delta j) W 0 q else 0).

Definition nested_margin_growth : (I -> int) -> option I -> R := nested t l growth_guard (clip W 0).

Let K0 : (0 < #|I|)%N. Proof. exact: leq_trans (leq_trans (l_pos (Ordinal J0)) (l_le _)) LK. Qed.

Lemma growth_guard_ge0 j q : 0 <= growth_guard j q.
Proof.
rewrite addr_ge0 ?ring_guard_ge0 //; case: ifP => // lK.
exact/ltW/(floor_term_gt0 c t1 (l_pos j) (d_pos lK)).
Qed.

Lemma growth_guard_others j q :
  \sum_(i in top (clip W 0 q) L :\: top (clip W 0 q) (l j)) weight t (clip W 0 q) i <=
  rho * growth_guard j q.
Proof.
apply: (le_trans (ring_guard_others (minn (l j) n) j _)); apply: ler_wpmul2l; first exact: ltW.
rewrite ler_addl; case: ifP => // lK.
exact/ltW/(floor_term_gt0 c t1 (l_pos j) (d_pos lK)).
Qed.

Theorem nested_margin_growth_offers_le1 q : \sum_i offer t l growth_guard (clip W 0) q i <= 1.
Proof.
apply: (@offers_le1 _ _ t _ l L _ rho (clip W 0) t1 J0 l_pos l_le LK (ltW rho0) rho1).
  exact: growth_guard_ge0.
exact: growth_guard_others.
Qed.

Theorem nested_margin_growth_private :
  private (fun q q' => drift c q q' /\ grows n q q') nested_margin_growth
    (t ^ c / (1 - rho)) (\sum_j delta j).
Proof.
suff cl : private (fun q q' => exists lo, moves lo c q q' /\ grows n q q') nested_margin_growth
    (t ^ c / (1 - rho)) (\sum_j delta j).
  by move=> q q' [[lo nb] few]; apply: cl; exists lo.
apply: (@nested_close _ _ t c _ _ L _ _ _ _ (fun lo q q' => moves lo c q q' /\ grows n q q')) => //.
- by move=> lo q q' [nb _]; apply: clip_moves.
- exact: ltW.
- exact: growth_guard_ge0.
- move=> j lo q q' [nb _]; apply: within_add; first by apply: ring_guard_within; apply: clip_moves.
  case: ifP => [lK|_]; last by split; rewrite mulr0.
  by apply: floor_term_within => //; apply: d_pos.
- move=> j lo q q' [nb few]; case: (ltnP (l j) #|I|) => [lK|Kl]; last first.
    by rewrite !top_all // setDv big_set0 mulr_ge0 ?growth_guard_ge0.
  have dj := d_pos lK; apply: (le_trans (clipped_slip t1 lK dj W K0 c0 nb few)).
  apply: ler_wpmul2l => //.
  rewrite /growth_guard lK; apply: ler_add => //; exact: ring_guard_ge.
- exact: growth_guard_others.
Qed.

End NestedMargin.
