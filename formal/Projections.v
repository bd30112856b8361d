(* What is left of a draw if only a part of it is looked at.

   Page: docs/proofs/keys-rounds.md ("The transcript"). *)
From Privmax Require Import Prelude Definitions NoisyCounts.

Section Projections.
Variable R : realFieldType.

(* The probabilities of all outcomes add up to one. *)
Definition adds_up (O : eqType) (p : O -> R) : Prop := is_Pr p (fun _ => True) 1.

(* Of an outcome x of q only phi x is looked at: that has law p. *)
Definition projects (O' O : eqType) (phi : O' -> O) (q : O' -> R) (p : O -> R) : Prop :=
  forall o, is_Pr q (fun x => phi x = o) (p o).

Lemma is_Pr_ge0 (O : eqType) (p : O -> R) S v : is_Pr p S v -> 0 <= v.
Proof. by case=> below _; rewrite -(big_nil 0 +%R xpredT p); apply: below. Qed.

Lemma is_Pr_ext (O : eqType) (p : O -> R) (S S' : O -> Prop) v :
  (forall o, S o <-> S' o) -> is_Pr p S v -> is_Pr p S' v.
Proof.
move=> e [below near]; split=> [s us sS|x /near[s [us sS] lt]].
  by apply: below => // o /sS /e.
by exists s => //; split=> // o /sS /e.
Qed.

Section Lift.
Variables (O' O : eqType) (phi : O' -> O) (q : O' -> R) (p : O -> R).
Hypothesis qp : projects phi q p.

Lemma by_image (s : seq O') :
  \sum_(x <- s) q x = \sum_(o <- undup (map phi s)) \sum_(x <- s | phi x == o) q x.
Proof.
under [RHS]eq_bigr do rewrite big_mkcond.
rewrite exchange_big /=; apply: eq_big_seq => x xs.
rewrite (bigD1_seq (phi x)) ?undup_uniq ?mem_undup ?map_f //= eqxx big1 ?addr0 // => o.
by rewrite eq_sym => /negPf->.
Qed.

Lemma project_below s : uniq s -> \sum_(x <- s) q x <= \sum_(o <- undup (map phi s)) p o.
Proof.
move=> us; rewrite by_image; apply: ler_sum => o _; rewrite -big_filter.
have [below _] := qp o; apply: below; first exact: filter_uniq.
by move=> x; rewrite mem_filter => /andP[/eqP].
Qed.

Lemma project_near s e : uniq s -> 0 < e -> exists2 s' : seq O',
  uniq s' /\ {in s', forall x, phi x \in s} & \sum_(o <- s) p o - e < \sum_(x <- s') q x.
Proof.
elim: s e => [|o s IH] e /=.
  by move=> _ e0; exists [::] => //; rewrite !big_nil sub0r oppr_lt0.
case/andP=> os us e0; have h0 : 0 < e / 2%:R by rewrite divr_gt0 ?ltr0n.
have [s' [us' in_s] lt] := IH _ us h0.
have [_ near] := qp o; have [t [ut to] lt'] := near _ h0.
exists (t ++ s'); last first.
  rewrite big_cons big_cat /= [X in _ - X](splitr e) opprD addrACA.
  by apply: ltr_add.
split; last by move=> x; rewrite mem_cat inE => /orP[/to ->|/in_s ->]; rewrite ?eqxx ?orbT.
rewrite cat_uniq ut us' andbT /=; apply/hasPn => x /in_s xs; apply: contra os => /to <-.
by [].
Qed.

(* An event that looks at phi x alone is as likely under both laws. *)
Lemma is_Pr_project S v : is_Pr p S v -> is_Pr q (fun x => S (phi x)) v.
Proof.
move=> [below near]; split=> [s us sS|e e0].
  apply: (le_trans (project_below us)); apply: below; first exact: undup_uniq.
  by move=> o; rewrite mem_undup => /mapP[x /sS Sx ->].
have h0 : 0 < e / 2%:R by rewrite divr_gt0 ?ltr0n.
have [s [us sS] lt] := near _ h0; have [s' [us' in_s] lt'] := project_near us h0.
exists s'; first by split=> // x /in_s /sS.
apply: lt_trans lt'; rewrite ltr_subr_addr {1}[e]splitr opprD addrA subrK.
by [].
Qed.

End Lift.

(* One draw after another. *)
Section Then.
Variables (O1 O2 : eqType) (q1 : O1 -> R) (q2 : O1 -> O2 -> R).
Hypothesis q10 : forall o, 0 <= q1 o.

Lemma is_Pr_then (S1 : O1 -> Prop) (S2 : O2 -> Prop) v1 v2 : 0 <= v2 -> is_Pr q1 S1 v1 ->
  (forall o, S1 o -> is_Pr (q2 o) S2 v2) ->
  is_Pr (then_ q1 q2) (fun x => S1 x.1 /\ S2 x.2) (v1 * v2).
Proof.
move=> v20 Pr1 Pr2; have v10 := is_Pr_ge0 Pr1; have [below near] := Pr1.
split=> [s us sS|e e0].
  have in1 o : o \in firsts s -> S1 o.
    by rewrite mem_undup => /mapP[x /sS[S1x _] ->].
  rewrite then_sum; apply: (@le_trans _ _ (\sum_(o <- firsts s) q1 o * v2)).
    rewrite !big_seq; apply: ler_sum => o os; apply: ler_wpmul2l => //.
    have [below2 _] := Pr2 o (in1 o os); apply: below2; first exact: seconds_uniq.
    by move=> y /mapP[x]; rewrite mem_filter => /andP[_ /sS[]] _ ? ->.
  by rewrite -big_distrl /=; apply: ler_wpmul2r => //; apply: below => //; apply: undup_uniq.
have w0 v : 0 <= v -> 0 < e / (2%:R * (1 + v)).
  by move=> v0; rewrite divr_gt0 ?mulr_gt0 ?ltr0n // ltr_spaddl.
have w1 v : 0 <= v -> v * (e / (2%:R * (1 + v))) < e / 2%:R.
  move=> v0; have n0 : 0 < 1 + v by rewrite ltr_spaddl.
  rewrite invfM mulrCA [v * _]mulrCA mulrA gtr_pmulr ?divr_gt0 ?ltr0n // ltr_pdivr_mulr //.
  by rewrite mul1r ltr_addr.
have [s [us sS] lt] := near _ (w0 _ v20); set e1 := e / _ in lt.
have e20 := w0 _ v10; set e2 := e / _ in e20.
have [t [ut tS] le] : exists2 t : seq (O1 * O2),
    uniq t /\ {in t, forall x, x.1 \in s /\ S2 x.2} &
    \sum_(o <- s) q1 o * (v2 - e2) <= \sum_(x <- t) then_ q1 q2 x.
  elim: s us sS {lt} => [|o s IH] /=; first by exists [::] => //; rewrite !big_nil.
  case/andP=> os us sS; have [|t [ut tS] le] := IH us.
    by move=> a a_s; apply: sS; rewrite inE a_s orbT.
  have [_ near2] := Pr2 o (sS o (mem_head _ _)); have [u [uu uS] lt] := near2 _ e20.
  exists ([seq (o, y) | y <- u] ++ t); last first.
    rewrite big_cons big_cat /= big_map /then_ /= -big_distrr /=; apply: ler_add => //.
    by apply: ler_wpmul2l => //; apply: ltW.
  split.
    rewrite cat_uniq ut andbT map_inj_uniq ?uu /=; last by move=> a b [].
    apply/hasPn => x /tS[xs _]; apply/mapP => -[y _ e']; move: os.
    by rewrite e' /= in xs *; rewrite xs.
  move=> x; rewrite mem_cat => /orP[/mapP[y /uS yS ->]|/tS[xs xS]] /=; first by rewrite mem_head.
  by rewrite inE xs orbT.
exists t; first by split=> // x /tS[/sS].
apply: lt_le_trans le; rewrite -big_distrl /= mulrBr.
apply: (@lt_le_trans _ _ ((v1 - e1) * v2 - v1 * e2)); last first.
  apply: ler_sub; first by apply: ler_wpmul2r => //; apply: ltW.
  by apply: ler_wpmul2r; [apply: ltW | apply: below].
rewrite mulrBl -addrA ltr_add2l -opprD ltr_opp2 [X in _ < X]splitr mulrC.
by apply: ltr_add; apply: w1.
Qed.

End Then.

Lemma then_adds_up (O1 O2 : eqType) (q1 : O1 -> R) (q2 : O1 -> O2 -> R) :
  (forall o, 0 <= q1 o) -> adds_up q1 -> (forall o, adds_up (q2 o)) -> adds_up (then_ q1 q2).
Proof.
move=> q10 a1 a2; rewrite /adds_up -[1]mulr1.
have := is_Pr_then q10 ler01 a1 (fun o _ => a2 o).
by apply: is_Pr_ext.
Qed.

Lemma then_projects (O1 O2 O1' O2' : eqType) (phi1 : O1 -> O1') (phi2 : O2 -> O2')
    (q1 : O1 -> R) (q2 : O1 -> O2 -> R) (p1 : O1' -> R) (p2 : O1' -> O2' -> R) :
  (forall o, 0 <= q1 o) -> (forall o y, 0 <= p2 o y) ->
  projects phi1 q1 p1 -> (forall o, projects phi2 (q2 o) (p2 (phi1 o))) ->
  projects (fun x => (phi1 x.1, phi2 x.2)) (then_ q1 q2) (then_ p1 p2).
Proof.
move=> q10 p20 pr1 pr2 [a b].
have pr o : phi1 o = a -> is_Pr (q2 o) (fun y => phi2 y = b) (p2 a b) by move=> <-; apply: pr2.
apply: is_Pr_ext (is_Pr_then q10 (p20 a b) (pr1 a) pr) => x.
by split=> [[-> ->]|[-> ->]].
Qed.

(* What is drawn later breaks a rule with probability b at most, what came before with a: so a + b
   for both. *)
Lemma then_event (O1 O2 : eqType) (q1 : O1 -> R) (q2 : O1 -> O2 -> R) (B1 : pred O1)
    (B2 : O1 -> pred O2) a b s :
  countable_law q1 -> (forall o, countable_law (q2 o)) -> 0 <= b ->
  (forall s, uniq s -> {in s, forall o, B1 o} -> \sum_(o <- s) q1 o <= a) ->
  (forall o s, uniq s -> {in s, forall y, B2 o y} -> \sum_(y <- s) q2 o y <= b) ->
  uniq s -> {in s, forall x, B1 x.1 || B2 x.1 x.2} -> \sum_(x <- s) then_ q1 q2 x <= a + b.
Proof.
move=> [q10 q11] laws b0 le1 le2 us sB; rewrite then_sum (bigID B1) /=; apply: ler_add.
  rewrite -big_filter; apply: (@le_trans _ _ (\sum_(o <- [seq o <- firsts s | B1 o]) q1 o)).
    apply: ler_sum => o _; rewrite ler_pimulr //; have [_ l1] := laws o; apply: l1.
    exact: seconds_uniq.
  apply: le1 => [|o]; first by rewrite filter_uniq ?undup_uniq.
  by rewrite mem_filter => /andP[].
apply: (@le_trans _ _ (\sum_(o <- firsts s | ~~ B1 o) q1 o * b)).
  apply: ler_sum => o nB; apply: ler_wpmul2l => //; apply: le2; first exact: seconds_uniq.
  move=> y /mapP[x]; rewrite mem_filter => /andP[/eqP e /sB]; rewrite e (negPf nB) /= => By ->.
  by [].
rewrite -big_distrl /= ler_pimull // -big_filter; apply: q11.
by rewrite filter_uniq ?undup_uniq.
Qed.

(* Independent numbers. *)
Lemma almost_one (J : finType) (a : J -> R) : (forall j, 0 <= a j <= 1) ->
  1 - \sum_j (1 - a j) <= \prod_j a j.
Proof.
move=> a01; have [//] : 1 - \sum_j (1 - a j) <= \prod_j a j /\ 0 <= \prod_j a j <= 1.
elim/big_rec2: _ => [|j s p _ [le /andP[p0 p1]]]; first by rewrite subr0 lexx ler01.
have /andP[a0 a1] := a01 j; rewrite mulr_ge0 //= mulr_ile1 //; split=> //.
rewrite -subr_ge0; move: le; rewrite -subr_ge0 => le.
have -> : a j * s - (1 - (1 - a j + p)) = (s - (1 - p)) + (1 - a j) * (1 - s).
  rewrite opprB -[1 - a j + p]addrA [1 + _]addrC addrK mulrBl mul1r mulrBr mulr1 !opprB addrA.
  rewrite [RHS]addrA [s + (p - 1) + _]addrAC [s + (1 - s)]addrC subrK [1 + _]addrC subrK.
  by rewrite [RHS]addrC.
by rewrite addr_ge0 // mulr_ge0 // subr_ge0.
Qed.

Lemma independent_adds_up (J : finType) (Z : choiceType) (p : J -> Z -> R) :
  (forall j, countable_law (p j)) -> (forall j, adds_up (p j)) -> adds_up (independent p).
Proof.
move=> laws all; have [n0 n1] := independent_law laws.
split=> [s us _|e e0]; first exact: n1.
have w0 : 0 < e / (1 + #|J|%:R) by rewrite divr_gt0 // ltr_spaddl ?ler0n ?ltr01.
have ex j : exists2 s : seq Z, uniq s & 1 - e / (1 + #|J|%:R) < \sum_(z <- s) p j z.
  by have [_ /(_ _ w0)[s [us _] lt]] := all j; exists s.
have /fin_all_exists2[V uV near] := ex.
pose U := undup (flatten [seq V j | j <- enum J]).
have sub j : {subset V j <= U}.
  move=> z zV; rewrite mem_undup; apply/flattenP; exists (V j) => //.
  by apply: map_f; rewrite mem_enum.
have [W [uW _] eq] := independent_box p (undup_uniq (flatten [seq V j | j <- enum J])).
exists W; first by split.
have in01 j : 0 <= \sum_(z <- U) p j z <= 1.
  by have [p0 p1] := laws j; rewrite sumr_ge0 //= p1 // undup_uniq.
rewrite eq; apply: (lt_le_trans _ (almost_one in01)); rewrite ltr_add2l ltr_opp2.
apply: (@le_lt_trans _ _ (\sum_(j : J) e / (1 + #|J|%:R))).
  apply: ler_sum => j _; rewrite ler_subl_addl -ler_subl_addr; apply: (le_trans (ltW (near j))).
  apply: part_sum (uV j) (undup_uniq _) (sub j).
  by case: (laws j).
rewrite sumr_const -[_ *+ _]mulr_natr mulrAC.
rewrite ltr_pdivr_mulr; last by rewrite ltr_spaddl ?ler0n ?ltr01.
by rewrite mulrDr mulr1 ltr_addr.
Qed.

Lemma no_noise_adds_up : adds_up (@no_noise R).
Proof.
split=> [s us _|e e0]; first by case: (no_noise_law R) => _; apply.
by exists [:: 0] => //; rewrite big_seq1 /no_noise eqxx ltr_subl_addr ltr_addl.
Qed.

Lemma noise_on_adds_up (J : finType) (S : {set J}) (p : int -> R) : countable_law p ->
  adds_up p -> adds_up (noise_on S p).
Proof.
move=> law all; apply: independent_adds_up => j; case: ifP => _ //; first exact: no_noise_law.
exact: no_noise_adds_up.
Qed.

Lemma shift_adds_up (V : zmodType) (p : V -> R) x : adds_up p -> adds_up (fun y => p (y - x)).
Proof. by apply: (is_Pr_shift (subrK x) (addrK x)). Qed.

(* The numbers of X, and 0 for the others. *)
Definition mask (J : finType) (X : {set J}) (y : {ffun J -> int}) : {ffun J -> int} :=
  [ffun j => if j \in X then y j else 0].

Lemma mask_out (J : finType) (X : {set J}) (y : {ffun J -> int}) j :
  mask X y = y -> j \notin X -> y j = 0.
Proof. by move=> <- jX; rewrite ffunE (negPf jX). Qed.

Lemma mask_moves (J : finType) (X : {set J}) (y : {ffun J -> int}) :
  mask X y != y -> exists2 j, j \notin X & y j != 0.
Proof.
move=> ne; have [j] : exists j, ~~ (mask X y j == y j).
  apply/existsP; rewrite -negb_forall; apply: contra ne => /forallP same.
  by apply/eqP/ffunP => j; apply/eqP.
by rewrite ffunE; case: ifP => [_|/negbT jX]; rewrite ?eqxx // eq_sym; exists j.
Qed.

Lemma independent_projects (J : finType) (p : J -> int -> R) (X : {set J}) :
  (forall j, countable_law (p j)) -> (forall j, adds_up (p j)) ->
  projects (mask X) (independent p) (independent (fun j => if j \in X then p j else @no_noise R)).
Proof.
move=> laws all z; pose inX j := if j \in X then p j else @no_noise R.
pose outX j := if j \in X then @no_noise R else p j.
have laws' j : countable_law (outX j) by rewrite /outX; case: ifP => _ //; apply: no_noise_law.
have all' j : adds_up (outX j) by rewrite /outX; case: ifP => _ //; apply: no_noise_adds_up.
have in0 : 0 <= independent inX z.
  by apply: prodr_ge0 => j _; rewrite /inX; case: ifP => _; [case: (laws j) | apply: ler0n].
have parts y : mask X y = z ->
    independent p y = independent inX z * independent outX (mask (~: X) y).
  move=> <-; rewrite /independent -big_split /=; apply: eq_bigr => j _.
  by rewrite /inX /outX !ffunE inE; case: (j \in X); rewrite /no_noise eqxx ?mulr1 ?mul1r.
have split_y y : y = mask X y + mask (~: X) y.
  by apply/ffunP => j; rewrite !ffunE inE; case: (j \in X); rewrite ?addr0 ?add0r.
have [o0 o1] := independent_law laws'; have [_ near] := independent_adds_up laws' all'.
split=> [s us sz|e e0].
  rewrite (eq_big_seq (fun y => independent inX z * independent outX (mask (~: X) y))); last first.
    by move=> y /sz /parts.
  rewrite -big_distrr /= ler_pimulr // -(big_map _ xpredT (independent outX)); apply: o1.
  rewrite map_inj_in_uniq // => a b /sz az /sz bz e.
  by rewrite (split_y a) (split_y b) az bz e.
have w0 : 0 < e / (1 + independent inX z) by rewrite divr_gt0 // ltr_spaddl ?ltr01.
have [s [us _] lt] := near _ w0.
have [zX|zX] := altP (mask X z =P z); last first.
  exists [::]; first by split.
  have [j /negPf jX /negPf zj] := mask_moves zX.
  by rewrite big_nil /independent (bigD1 j) //= /inX jX /no_noise zj mul0r sub0r oppr_lt0.
have back y : mask (~: X) y = y -> mask X (y + z) = z /\ mask (~: X) (y + z) = y.
  move=> yX; split; apply/ffunP => j; rewrite !ffunE ?inE.
    case: (boolP (j \in X)) => jX; last by rewrite (mask_out zX).
    by rewrite (mask_out yX) ?inE ?jX // add0r.
  case: (boolP (j \in X)) => jX /=; last by rewrite (mask_out zX) // addr0.
  by rewrite (mask_out yX) // inE jX.
exists [seq y + z | y <- s & mask (~: X) y == y].
  split; first by rewrite map_inj_uniq ?filter_uniq // => a b /addIr.
  move=> y /mapP[y']; rewrite mem_filter => /andP[/eqP y'X _] ->.
  by have [] := back _ y'X.
rewrite big_map big_filter.
rewrite (eq_bigr (fun y => independent inX z * independent outX y)); last first.
  by move=> y /eqP /back[yz out]; rewrite parts // out.
have -> : \sum_(y <- s | mask (~: X) y == y) independent inX z * independent outX y =
    independent inX z * \sum_(y <- s) independent outX y.
  rewrite big_distrr /= [RHS](bigID (fun y => mask (~: X) y == y)) /= [X in _ + X]big1 ?addr0 //.
  move=> y /mask_moves[j]; rewrite inE negbK => jX /negPf yj.
  by rewrite {2}/independent (bigD1 j) //= /outX jX /no_noise yj mul0r mulr0.
apply: (@lt_le_trans _ _ (independent inX z * (1 - e / (1 + independent inX z)))); last first.
  by apply: ler_wpmul2l => //; apply: ltW.
rewrite mulrBr mulr1 ltr_add2l ltr_opp2 mulrCA gtr_pmulr //.
by rewrite ltr_pdivr_mulr ?mul1r ?ltr_addr ?ltr01 // ltr_spaddl ?ltr01.
Qed.

(* One number that is noisy reaches its threshold as rarely as its noise does. *)
Lemma independent_one (J : finType) (p : J -> int -> R) (j : J) (rho : int) (b : R) s :
  (forall i, countable_law (p i)) ->
  (forall V, uniq V -> {in V, forall z, rho <= z} -> \sum_(z <- V) p j z <= b) -> uniq s ->
  {in s, forall y : {ffun J -> int}, rho <= y j} -> \sum_(y <- s) independent p y <= b.
Proof.
move=> laws le us sr.
pose q i z : R := if (i == j) && ~~ (rho <= z) then 0 else p i z.
rewrite (eq_big_seq (independent q)); last first.
  move=> y /sr yr; apply: eq_bigr => i _; rewrite /q.
  by case: eqP => [->|] //=; rewrite yr.
have -> : b = \prod_i (if i == j then b else 1).
  by rewrite (bigD1 j) //= eqxx big1 ?mulr1 // => i /negPf ->.
apply: independent_bound => // [i z|i V uV]; rewrite /q.
  by case: ifP => _ //; case: (laws i).
case: eqP => [->|_] /=; last by case: (laws i) => _; apply.
rewrite (bigID (fun z => rho <= z)) /= [X in _ + X]big1 ?addr0 => [|z /negPf ->] //.
rewrite (eq_bigr (p j)) => [|z ->] //; rewrite -big_filter; apply: le; first exact: filter_uniq.
by move=> z; rewrite mem_filter => /andP[].
Qed.

End Projections.
