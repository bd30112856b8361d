(* An order from a set.

   Page: docs/proofs/ranked-margin.md. A set is drawn, and noise is added to the scores of its
   members; what is released is made of the differences of the noisy scores: the order, and how far
   apart its items are. *)
From Privmax Require Import Prelude Definitions Scores LimitedDomain NoisyMaximum LargeMargin
  NoisyCounts.

Section Median.
Variables (I : finType) (S : {set I}) (s : nat).

Lemma sum_below (n c : nat) : (\sum_(i < c) (i < n))%N = minn c n.
Proof.
elim: c => [|c IH]; first by rewrite big_ord0 min0n.
rewrite big_ord_recr /= IH; case: ltnP => cn; rewrite ?addn0 ?addn1.
  by rewrite (minn_idPl cn).
by rewrite (minn_idPr (leqW cn)).
Qed.

(* "A best t is a median of u": then at most half of the coordinates are on either side of it, step
   by step. *)
Lemma median (u : I -> nat) : (forall i, u i <= s)%N -> exists t : nat,
  (\sum_(i in S) `|(u i)%:Z - t%:Z| <= minn #|[set i in S | 0 < u i]| #|S|./2 * s)%N.
Proof.
move=> le; pose above c := #|[set i in S | (c < u i)%N]|.
have above_le c c' : (c <= c')%N -> (above c' <= above c)%N.
  move=> cc; apply: subset_leq_card; apply/subsetP => i; rewrite !inE => /andP[-> lt] /=.
  exact: leq_ltn_trans lt.
pose many (c : nat) := (#|S| < (above c).*2)%N.
pose t := #|[set c : 'I_s | many c]|.
have t_le : (t <= s)%N by rewrite -[s]card_ord /t -cardsT subset_leq_card ?subsetT.
have t_is (c : 'I_s) : (c < t)%N = many c.
  apply/idP/idP => [ct|cm].
    apply/negPn/negP => few; move: ct; rewrite ltnNge => /negP; apply.
    have sub : [set c' : 'I_s | many c'] \subset [set c' : 'I_s | (c' < c)%N].
      apply/subsetP => c'; rewrite !inE ltnNge => cm; apply/negP => cc; case/negP: few.
      by apply: (leq_trans cm); rewrite leq_double above_le.
    apply: (leq_trans (subset_leq_card sub)); rewrite -sum1dep_card big_mkcond /=.
    rewrite (eq_bigr (fun c' : 'I_s => nat_of_bool (c' < c)%N)); last by move=> c' _; case: ifP.
    by rewrite sum_below geq_minr.
  have sub : [set c' : 'I_s | (c' < c.+1)%N] \subset [set c' : 'I_s | many c'].
    apply/subsetP => c'; rewrite !inE ltnS => cc; apply: (leq_trans cm).
    by rewrite leq_double above_le.
  apply: leq_trans (subset_leq_card sub); rewrite -sum1dep_card big_mkcond /=.
  rewrite (eq_bigr (fun c' : 'I_s => nat_of_bool (c' < c.+1)%N)); last by move=> c' _; case: ifP.
  by rewrite sum_below (minn_idPr (ltn_ord c)).
exists t; apply: (@leq_trans (\sum_(i in S) \sum_(c < s) ((c < u i)%N != (c < t)%N))).
  apply: leq_sum => i _; rewrite -lez_nat abszE.
  have as_sum n : (n <= s)%N -> n%:Z = \sum_(c < s) (nat_of_bool (c < n)%N)%:Z.
    move=> ns; rewrite -[n in LHS](minn_idPr ns) -sum_below.
    exact: (big_morph Posz PoszD (erefl (Posz 0))).
  rewrite (as_sum _ (le i)) (as_sum _ t_le) -sumrB.
  apply: (le_trans (ler_norm_sum _ _ _)); rewrite (big_morph Posz PoszD (erefl (Posz 0))).
  apply: ler_sum => c _.
  by case: (_ < _)%N; case: (_ < _)%N.
rewrite exchange_big /= mulnC -[X in (_ <= X * _)%N]card_ord -sum_nat_const.
apply: leq_sum => c _; have cS : (above c <= #|S|)%N.
  by apply: subset_leq_card; apply/subsetP => i; rewrite inE => /andP[].
have split : (\sum_(i in S) ((c < u i)%N != (c < t)%N) =
    if (c < t)%N then #|S| - above c else above c)%N.
  have count_above : above c = (\sum_(i in S) (c < u i))%N.
    by rewrite /above -sum1dep_card big_mkcondr /=; apply: eq_bigr => i _; case: ifP.
  case: ifP => _; last by rewrite count_above; apply: eq_bigr => i _; case: (_ < _)%N.
  rewrite -sum1_card count_above; apply/eqP; rewrite -(eqn_add2r (\sum_(i in S) (c < u i))%N).
  rewrite subnK; last by apply: leq_sum => i _; case: (_ < _)%N.
  by rewrite -big_split /=; apply/eqP; apply: eq_bigr => i _; case: (_ < _)%N.
rewrite split leq_min t_is /many; have c0 := above_le 0%N c (leq0n _).
have half n b : (n <= b./2)%N = (n.*2 <= b)%N by rewrite geq_half_double.
case: ltnP => [lt|ge]; rewrite half; last by rewrite c0 ge.
have small : (#|S| - above c <= above c)%N.
  by rewrite leq_subLR addnn ltnW.
rewrite (leq_trans small c0) /= -addnn -{3}(subnK cS) leq_add2l //.
Qed.

End Median.

Section Order.
Variables (R : realFieldType) (x : R) (I O : finType) (items : O -> {set I}) (k m s : nat).
Hypotheses (x0 : 0 < x) (x1 : x < 1) (at_most : forall o, (#|items o| <= k)%N).

(* "Integer scores of sensitivity s, which under add-remove all move the same way", at most m of
   them. *)
Definition together (q q' : I -> int) : Prop :=
  ((forall i, q i <= q' i <= q i + s%:Z) \/ (forall i, q' i <= q i <= q' i + s%:Z)) /\
  grows m q q'.

(* "The list of S sorted by y, with y_i - y_first, and the marks are functions of the differences
   y_i - y_j and of coins." *)
Definition differences (o : O) (y : {ffun I -> int}) : {ffun I * I -> int} :=
  [ffun p => if (p.1 \in items o) && (p.2 \in items o) then y p.1 - y p.2 else 0].

(* "So they are a function of x + (u - t 1) + N." *)
Lemma differences_shift o y (t : int) :
  differences o (y + [ffun i => if i \in items o then t else 0]) = differences o y.
Proof.
apply/ffunP => -[i j]; rewrite !ffunE /=; case: ifP => // /andP[-> ->].
by rewrite opprD addrACA subrr addr0.
Qed.

(* "There t = 0 and t = s give ... ; the less of the two is at most min(m, n/2) s." *)
Definition rest o q q' (t : int) : {ffun I -> int} :=
  true_counts items q' o + [ffun i => if i \in items o then t else 0] - true_counts items q o.

Lemma best_shift o q q' : together q q' -> exists t : int,
  (\sum_i `|rest o q q' t i| <= minn m k./2 * s)%N.
Proof.
move=> [moves few].
have bound (u : I -> nat) : (forall i, u i = `|q' i - q i|)%N ->
    (minn #|[set i in items o | (0 < u i)%N]| #|items o|./2 * s <= minn m k./2 * s)%N.
  move=> ue; rewrite leq_mul2r leq_min !geq_min; apply/orP; right; apply/andP; split.
    apply/orP; left; apply: leq_trans few; apply: subset_leq_card; apply/subsetP => i.
    by rewrite !inE ue absz_gt0 subr_eq0 eq_sym => /andP[].
  by apply/orP; right; apply: half_leq.
have small : forall i, (`|(q' i - q i)| <= s)%N.
  move=> i; rewrite -lez_nat abszE ler_norml; case: moves => /(_ i)/andP[a b].
    by rewrite ler_subl_addl b andbT (@le_trans _ _ 0) ?oppr_le0 // subr_ge0.
  rewrite ler_subr_addr addrC ler_subl_addr b /= ler_subl_addr.
  by apply: (le_trans a); rewrite ler_addr.
have [t le] := @median I (items o) s (fun i => `|q' i - q i|%N) small.
have le' := leq_trans le (bound _ (fun i => erefl)).
case: moves => moves; [exists (- t%:Z) | exists t%:Z]; apply: leq_trans le';
  rewrite [X in (_ <= X)%N]big_mkcond; apply: leq_sum => i _; rewrite /rest !ffunE;
  case: ifP => _; rewrite ?addr0 ?subrr //; have /andP[a b] := moves i.
- by rewrite gez0_abs ?subr_ge0 // addrAC.
- have -> : q' i + t%:Z - q i = - (q i - q' i - t%:Z) by rewrite opprB opprB addrCA addrA.
  by rewrite abszN lez0_abs ?subr_le0 // opprB.
Qed.

(* "Sequential composition adds the costs: the order is at ((1 - beta) epsilon, 0)", with Laplace
   noise of scale m1 s / epsilon_N, m1 = min(m, k/2). *)
Theorem ranked_margin_laplace (choose : (I -> int) -> O -> R) r delta : 0 <= r ->
  (forall q, is_law (choose q)) -> private together choose r delta ->
  counts_private together choose (true_counts items) (fun o => laplace_for x (items o))
    differences (r * x^-1 ^+ (minn m k./2 * s)) (delta + 0).
Proof.
move=> r0 laws priv; apply: selection_then_counts => //.
- by rewrite exprn_ge0 // invr_ge0 ltW.
- by move=> o; apply: laplace_for_law.
move=> o q q' nb; have [t le] := best_shift o nb.
exists [ffun i => if i \in items o then t else 0]; first by move=> y; apply: differences_shift.
apply: laplace_for_covers => // i iS.
by rewrite !ffunE (negPf iS) !(addr0, oppr0).
Qed.

End Order.
