(* The gap test: privacy and optimality.

   Page: docs/proofs/gap-test.md, and lemma 4 of docs/proofs/set-margin.md. r is e^epsilon. *)
From Privmax Require Import Prelude Definitions Scores LimitedDomain.

Section Chances.
Variables (R : realFieldType) (r delta : R).
Hypotheses (r1 : 1 <= r) (d0 : 0 <= delta) (d1 : delta <= 1).

(* "pi(0) = 0, pi(n+1) = min{ e^epsilon pi(n) + delta, 1 - e^(-epsilon) (1 - pi(n) - delta), 1 }" *)
Definition next (p : R) : R := Num.min (Num.min (r * p + delta) (1 - r^-1 * (1 - p - delta))) 1.
Fixpoint chance (n : nat) : R := if n is m.+1 then next (chance m) else 0.

Let r0 : 0 < r. Proof. exact: lt_le_trans r1. Qed.
Let ri0 : 0 <= r^-1. Proof. by rewrite invr_ge0 ltW. Qed.
Let ri1 : r^-1 <= 1. Proof. by rewrite invf_le1. Qed.

Lemma next_mono p p' : p <= p' -> next p <= next p'.
Proof.
move=> le; rewrite /next !le_minr !le_minl lexx !orbT andbT.
have h1 : r * p + delta <= r * p' + delta by rewrite ler_add2r ler_pmul2l.
have h2 : 1 - r^-1 * (1 - p - delta) <= 1 - r^-1 * (1 - p' - delta).
  by rewrite ler_add2l ler_opp2; apply: ler_wpmul2l => //; rewrite ler_add2r ler_add2l ler_opp2.
by rewrite h1 h2 !orbT.
Qed.

(* "pi is non-decreasing: each of the three terms is at least pi(n)." *)
Lemma next_ge p : 0 <= p <= 1 -> p <= next p.
Proof.
case/andP=> p0 p1; rewrite /next !le_minr p1 andbT; apply/andP; split.
  by rewrite -[X in X <= _]addr0; apply: ler_add => //; rewrite ler_pemull.
rewrite ler_subr_addr -ler_subr_addl; apply: (@le_trans _ _ (r^-1 * (1 - p))).
  by apply: ler_wpmul2l => //; rewrite ler_subl_addr ler_addl.
by rewrite ler_pimull // subr_ge0.
Qed.

Lemma chance_in n : 0 <= chance n <= 1.
Proof.
elim: n => [|n IH] /=; first by rewrite lexx ler01.
case/andP: (IH) => p0 p1; rewrite (le_trans p0 (next_ge IH)) /=.
by rewrite /next le_minl lexx orbT.
Qed.

Lemma chance_le m n : (m <= n)%N -> chance m <= chance n.
Proof.
elim: n => [|n IH]; first by rewrite leqn0 => /eqP->.
rewrite leq_eqVlt => /orP[/eqP-> //|]; rewrite ltnS => /IH le.
exact: le_trans le (next_ge (chance_in n)).
Qed.

(* "And pi(1) = delta, because 1 - e^(-epsilon) (1 - delta) >= delta." *)
Lemma chance1 : chance 1 = delta.
Proof.
rewrite /= /next mulr0 add0r subr0 min_l; last first.
  by rewrite le_minl d1.
apply: min_l; rewrite ler_subr_addr -ler_subr_addl.
by rewrite ler_pimull // subr_ge0.
Qed.

(* The first two terms of the minimum, rearranged. *)
Lemma chance_up n : chance n.+1 <= r * chance n + delta.
Proof. by rewrite /= /next !le_minl lexx. Qed.

Lemma chance_down n : 1 - chance n <= r * (1 - chance n.+1) + delta.
Proof.
have : chance n.+1 <= 1 - r^-1 * (1 - chance n - delta) by rewrite /= /next !le_minl lexx orbT.
rewrite ler_subr_addr -ler_subr_addl ler_pdivr_mull // => le.
by rewrite -ler_subl_addr.
Qed.

End Chances.

Section GapTest.
Variables (R : realFieldType) (I : finType) (r delta : R) (c k : nat).
Hypotheses (r1 : 1 <= r) (d0 : 0 <= delta) (d1 : delta <= 1).
Hypotheses (c0 : (0 < c)%N) (k0 : (0 < k)%N) (kK : (k < #|I|)%N).
Implicit Types (q : I -> int) (i j : I) (S : {set I}).

(* "gamma = q_(k) - q_(k+1)" *)
Definition edge q : int := stat q k.-1 - stat q k.

(* "n = the ceiling of gamma / c" *)
Definition steps q : nat := ((`|edge q| + c.-1) %/ c)%N.

Let k1K : (k.-1 < #|I|)%N. Proof. exact: leq_ltn_trans (leq_pred k) kK. Qed.

Lemma edge_ge0 q : 0 <= edge q.
Proof. by rewrite subr_ge0 stat_le // leq_pred. Qed.

Lemma steps_le q (n : nat) : (steps q <= n)%N = (edge q <= (n * c)%:Z).
Proof.
rewrite -{1}(gez0_abs (edge_ge0 q)) lez_nat /steps -ltnS ltn_divLR // mulSn.
by rewrite -{2}(prednK c0) addSn ltnS addnC leq_add2l.
Qed.

(* "release the best k candidates, as a set, with probability pi(n), else nothing" *)
Definition gap_test q (o : option {set I}) : R :=
  match o with
  | Some A => if A == top q k then chance r delta (steps q) else 0
  | None => 1 - chance r delta (steps q)
  end.

(* "Lemma 4. n and n' differ by at most 1." *)
Lemma steps_close lo q q' : moves lo c q q' -> (steps q' <= (steps q).+1)%N.
Proof.
move=> nb; rewrite steps_le mulSn PoszD.
have : edge q <= (steps q * c)%:Z by rewrite -steps_le.
have /andP[_ h1] := stat_moves nb k1K; have /andP[h2 _] := stat_moves nb kK.
rewrite ler_subl_addr in h1; rewrite ler_subr_addr in h2.
move=> le; apply: (@le_trans _ _ (lo + c%:Z + stat q k.-1 - (lo + stat q k))).
  exact: ler_sub.
rewrite opprD addrACA [lo + c%:Z]addrC addrK.
by rewrite ler_add2l.
Qed.

(* The edge is at most the difference of any two scores inside and outside the best k. *)
Lemma edge_le q i j : i \in top q k -> j \notin top q k -> edge q <= q i - q j.
Proof.
move=> iS jS; apply: ler_sub; last exact: out_top_le.
by rewrite -(stat_rank q i) stat_le //; move: iS; rewrite inE -{1}(prednK k0) ltnS.
Qed.

(* "If S* and S*' differ, n <= 1 and n' <= 1: q_i - q_j is at least the gap of D, and q'_j - q'_i at
   least that of D'. Their sum is at most c." *)
Lemma differ_steps lo q q' : moves lo c q q' -> top q k != top q' k -> (steps q <= 1)%N.
Proof.
move=> nb ne; rewrite steps_le mul1n.
have cards : #|top q k| = #|top q' k| by rewrite !card_top // ltnW.
have /subsetPn[i iS iS'] : ~~ (top q k \subset top q' k).
  by apply: contra ne => sub; rewrite eqEcard sub cards leqnn.
have /subsetPn[j jS' jS] : ~~ (top q' k \subset top q k).
  by apply: contra ne => sub; rewrite eq_sym eqEcard sub cards leqnn.
apply: (le_trans (edge_le iS jS)); have ge := top_ge jS' iS'.
have /andP[i1 _] := nb i; have /andP[_ j2] := nb j.
rewrite ler_subr_addr in i1; rewrite ler_subl_addr in j2.
rewrite ler_subl_addr -(ler_add2l lo) addrA; apply: (le_trans i1).
exact: le_trans ge j2.
Qed.

Lemma Pr_gap q (S : {set option {set I}}) : Pr (gap_test q) S =
  (if None \in S then 1 - chance r delta (steps q) else 0) +
  (if Some (top q k) \in S then chance r delta (steps q) else 0).
Proof.
rewrite /Pr big_mkcond sum_option /=; congr (_ + _).
rewrite (bigD1 (top q k)) //= eqxx big1 ?addr0 // => T /negbTE->.
by case: ifP.
Qed.

Theorem gap_test_law q : is_law (gap_test q).
Proof.
have /andP[p0 p1] := chance_in r1 d0 (steps q); split=> [[A|]|] /=.
- by case: ifP.
- by rewrite subr_ge0.
rewrite sum_option /= (bigD1 (top q k)) //= eqxx big1 ?addr0 ?subrK // => T /negbTE->.
by [].
Qed.

(* "Statement. This is (epsilon, delta)-differentially private." *)
Theorem gap_test_private : private (@drift I c) gap_test r delta.
Proof.
move=> q q' [lo nb] S.
have up := steps_close nb; have down := steps_close (moves_sym nb).
have r0 : 0 <= r by apply: le_trans r1.
have in01 n := chance_in r1 d0 n.
case: (eqVneq (top q k) (top q' k)) => [same|ne]; last first.
  have small e : (steps e <= 1)%N -> chance r delta (steps e) <= delta.
    by move=> le; rewrite -[X in _ <= X](chance1 r1 d1) chance_le.
  have s1 := small q (differ_steps nb ne).
  have s1' : chance r delta (steps q') <= delta.
    by apply: small; apply: (differ_steps (moves_sym nb)); rewrite eq_sym.
  have [ge0 sum1] := gap_test_law q; have [ge0' _] := gap_test_law q'.
  case: (boolP (None \in S)) => noneS; last first.
    rewrite [X in X <= _]Pr_gap (negbTE noneS) add0r.
    apply: (@le_trans _ _ delta); first by case: ifP.
    by rewrite ler_addr mulr_ge0 // Pr_ge0.
  apply: (le_trans (Pr_le1 _ (gap_test_law q))).
  apply: (@le_trans _ _ (1 - chance r delta (steps q') + delta)).
    by rewrite -addrA ler_addl addrC subr_ge0.
  rewrite ler_add2r; apply: (@le_trans _ _ (Pr (gap_test q') S)).
    rewrite Pr_gap noneS ler_addl; case: ifP => // _.
    by case/andP: (in01 (steps q')).
  by rewrite ler_pemull // Pr_ge0.
rewrite !Pr_gap -same.
have A : chance r delta (steps q) <= r * chance r delta (steps q') + delta.
  apply: (le_trans _ (chance_up r delta (steps q'))).
  by apply: chance_le.
have B : 1 - chance r delta (steps q) <= r * (1 - chance r delta (steps q')) + delta.
  apply: (le_trans (@chance_down _ _ delta r1 (steps q))); rewrite ler_add2r;
    apply: ler_wpmul2l => //.
  by rewrite ler_add2l ler_opp2; apply: chance_le.
case: ifP => _; case: ifP => _; rewrite ?addr0 ?add0r ?subrK //.
  by rewrite mulr1 -[X in X <= _]addr0; apply: ler_add.
by rewrite mulr0 add0r.
Qed.

(* "S*, the best k, is the only set of k candidates that are all better than everybody outside." *)
Definition best q (A : {set I}) : Prop :=
  #|A| = k /\ forall i j, i \in A -> j \notin A -> q j < q i.

Lemma best_top q A : best q A -> A = top q k.
Proof.
case=> cardA sep; apply/eqP; rewrite eqEcard cardA (card_top q (ltnW kK)) leqnn andbT.
apply/negP => /negP /subsetPn[i iA iT].
have /subsetPn[j jT jA] : ~~ (top q k \subset A).
  apply/negP => sub; have : top q k == A by rewrite eqEcard sub cardA (card_top q (ltnW kK)) leqnn.
  by move/eqP => e; rewrite e iA in iT.
by have := top_ge jT iT; rewrite leNgt sep.
Qed.

(* "Let i be one of the lowest of S*, j one of the best outside. So q_i - q_j = gamma." *)
Lemma edge_attained q : exists i j, [/\ i \in top q k, j \notin top q k & q i - q j = edge q].
Proof.
have [i0 _] : exists i0 : I, true.
  by case: (pickP (mem I)) => [i _|/eq_card0 K0]; [exists i | by move: kK; rewrite K0].
exists (nth i0 (ranking q) k.-1), (nth i0 (ranking q) k); split.
- by rewrite inE rank_nth // prednK.
- by rewrite inE rank_nth // ltnn.
- by rewrite /edge !(stat_nth q i0).
Qed.

(* "Lower q_i by 1, and under replace raise q_j": by some e below c. *)
Definition shift q i j (e : int) : I -> int :=
  fun a => if a == i then q a - 1 else if a == j then q a + e else q a.

Lemma shift_edge q i j e : i \in top q k -> j \notin top q k ->
  top (shift q i j e) k = top q k -> edge (shift q i j e) <= q i - q j - 1 - e.
Proof.
move=> iS jS same; have ji : (j == i) = false by apply: contraNF jS => /eqP->.
apply: (@le_trans _ _ (shift q i j e i - shift q i j e j)).
  by apply: edge_le; rewrite same.
by rewrite /shift eqxx ji eqxx opprD addrACA [- 1 - e]addrC addrA [_ - e - 1]addrAC.
Qed.

(* Moving the two closer, as long as they do not meet, leaves the best set as it is. *)
Lemma shift_best q i j e : best q (top q k) -> i \in top q k -> j \notin top q k ->
  q i - q j = edge q -> 0 <= e -> e + 1 < edge q -> best (shift q i j e) (top q k).
Proof.
move=> [cardS sep] iS jS ed e0 lt; split=> // a b aS bS.
have ai : shift q i j e i <= shift q i j e a.
  have aj : (a == j) = false by apply: contraNF jS => /eqP<-.
  rewrite /shift eqxx aj; case: (eqVneq a i) => [->//|_].
  apply: (@le_trans _ _ (q i)); first by rewrite ler_subl_addr ler_addl.
  have /andP[] : (edge q <= q a - q j) && true by rewrite edge_le.
  by rewrite -ed ler_add2r.
have bj : shift q i j e b <= shift q i j e j.
  have bi : (b == i) = false by apply: contraNF bS => /eqP->.
  have ji : (j == i) = false by apply: contraNF jS => /eqP->.
  rewrite /shift bi ji eqxx; case: (eqVneq b j) => [->//|_].
  apply: (@le_trans _ _ (q j)); last by rewrite ler_addl.
  have /andP[] : (edge q <= q i - q b) && true by rewrite edge_le.
  by rewrite -ed ler_add2l ler_opp2.
apply: (le_lt_trans bj); apply: lt_le_trans ai.
have ji : (j == i) = false by apply: contraNF jS => /eqP->.
rewrite /shift eqxx ji eqxx ltr_subr_addr -addrA.
by rewrite -ltr_subr_addl ed.
Qed.

(* "The class. Mechanisms whose outcome on every data set is nothing or the best k candidates as a
   set, and nothing where the last of their places is shared. Every vector of integer scores (in an
   open universe: non-negative) is the vector of some data set, every move the relation allows leads
   to a neighbor, and there are more than k candidates." possible says which scores there are. *)
Section Optimal.
Variables (possible : (I -> int) -> Prop) (neighbors : (I -> int) -> (I -> int) -> Prop).
Hypothesis possible_shift : forall q i j e, possible q -> q j < q i -> 0 <= e < c%:Z ->
  possible (shift q i j e).
Hypothesis neighbors_shift : forall q i j e, i != j -> 0 <= e < c%:Z ->
  neighbors q (shift q i j e) /\ neighbors (shift q i j e) q.
Variable M : (I -> int) -> option {set I} -> R.
Hypothesis M_law : forall q, is_law (M q).
Hypothesis M_class : forall q A, M q (Some A) != 0 -> best q A.
Hypothesis M_private : forall q q', possible q -> possible q' -> neighbors q q' ->
  close (M q) (M q') r delta.

Lemma close_one q q' o : possible q -> possible q' -> neighbors q q' ->
  M q o <= r * M q' o + delta /\ 1 - M q o <= r * (1 - M q' o) + delta.
Proof.
move=> pq pq' nb; have cl := M_private pq pq' nb; split.
  by have := cl [set o]; rewrite /Pr !big_set1.
have eq e : Pr (M e) (~: [set o]) = 1 - M e o.
  have [_ <-] := M_law e; rewrite (bigD1 o) //= addrAC subrr add0r.
  by apply: eq_bigl => o'; rewrite !inE.
by have := cl (~: [set o]); rewrite !eq.
Qed.

(* "Theorem. If a mechanism of the class is (epsilon, delta)-private, it releases the best k of D
   with probability at most pi(n(D)), for every D. Proof. By induction on n." *)
Lemma optimal_upto n q A : possible q -> best q A -> edge q <= (n * c)%:Z ->
  M q (Some A) <= chance r delta n.
Proof.
have r0 : 0 < r by apply: lt_le_trans r1.
elim: n q A => [|n IH] q A pq bA le.
  have [i [j [iS jS ed]]] := edge_attained q.
  have := best_top bA => e; subst A; case: bA => _ sep.
  by have := sep i j iS jS; rewrite -subr_gt0 ed ltNge le.
have eA := best_top bA; subst A.
have [i [j [iS jS ed]]] := edge_attained q.
have ij : i != j by apply: contraNneq jS => <-.
have lt_ji : q j < q i by case: bA => _; apply.
have ed0 : 0 < edge q by rewrite -ed subr_gt0.
case: (lerP (edge q) c%:Z) => [small|large].
  (* "In this neighbor j is as good as i, so S* is not the best set and has probability 0." *)
  have range : 0 <= edge q - 1 < c%:Z.
    by rewrite subr_ge0 -gtz0_ge1 ed0 /= ltr_subl_addr ltz_addr1.
  have [nb _] := neighbors_shift q ij range.
  have [up _] := close_one (Some (top q k)) pq (possible_shift pq lt_ji range) nb.
  have zero : M (shift q i j (edge q - 1)) (Some (top q k)) = 0.
    apply/eqP; apply: contraT => /M_class[_ sep]; have := sep i j iS jS.
    have ji : (j == i) = false by rewrite eq_sym (negbTE ij).
    by rewrite /shift eqxx ji eqxx -ed addrA [q j + _]addrC subrK ltxx.
  rewrite zero mulr0 add0r in up; apply: (le_trans up).
  by rewrite -[X in X <= _](chance1 r1 d1) chance_le.
(* "Lower q_i by 1 and under replace raise q_j by 1. The gap is less by exactly c: S* is still the
   best set, and n(D') = n." *)
have range : 0 <= c%:Z - 1 < c%:Z by rewrite subr_ge0 -gtz0_ge1 ltz_nat c0 /=
  ltr_subl_addr ltz_addr1.
set q' := shift q i j (c%:Z - 1).
have b' : best q' (top q k).
  by apply: shift_best => //; [case/andP: range | rewrite subrK].
have pq' : possible q' by apply: possible_shift.
have le' : edge q' <= (n * c)%:Z.
  have same := esym (best_top b'); apply: (le_trans (shift_edge iS jS same)).
  rewrite ed; rewrite mulSn PoszD in le.
  by rewrite opprB addrA subrK ler_subl_addl.
have p' := IH q' _ pq' b' le'.
have [nb nb'] := neighbors_shift q ij range.
have [up _] := close_one (Some (top q k)) pq pq' nb.
have [_ down] := close_one (Some (top q k)) pq' pq nb'.
apply: (@le_trans _ _ (next r delta (M q' (Some (top q k))))); last by apply: next_mono.
rewrite /next !le_minr up /=.
have [ge0 _] := M_law q; apply/andP; split; last first.
  have := Pr_le1 [set Some (top q k)] (M_law q); by rewrite /Pr big_set1.
rewrite ler_subr_addr -ler_subr_addl ler_pdivr_mull //.
by rewrite ler_subl_addr.
Qed.

Theorem gap_test_optimal q : possible q -> M q (Some (top q k)) <= chance r delta (steps q).
Proof.
move=> pq; case: (eqVneq (M q (Some (top q k))) 0) => [->|/M_class b].
  by case/andP: (chance_in r1 d0 (steps q)).
by apply: optimal_upto => //; rewrite -steps_le.
Qed.

End Optimal.
End GapTest.

(* The theorem for the two relations, in a closed universe (every vector of scores) and an open one
   (every vector of non-negative scores). *)
Section TwoRelations.
Variables (R : realFieldType) (I : finType) (r delta : R) (k : nat) (open : bool).
Hypotheses (r1 : 1 <= r) (d0 : 0 <= delta) (d1 : delta <= 1) (k0 : (0 < k)%N) (kK : (k < #|I|)%N).
Variable M : (I -> int) -> option {set I} -> R.

Definition exists_data (q : I -> int) : Prop := open -> forall i, 0 <= q i.

(* M is (epsilon, delta)-private, and of the class. *)
Definition competitor (neighbors : (I -> int) -> (I -> int) -> Prop) : Prop :=
  [/\ forall q, is_law (M q), forall q A, M q (Some A) != 0 -> best k q A &
    forall q q', exists_data q -> exists_data q' -> neighbors q q' -> close (M q) (M q') r delta].

Lemma exists_shift c q i j e : exists_data q -> q j < q i -> 0 <= e < c%:Z ->
  exists_data (shift q i j e).
Proof.
move=> ex lt /andP[e0 _] o a; have q0 := ex o; rewrite /shift; case: eqP => [->|_].
  by rewrite subr_ge0 -gtz0_ge1 (le_lt_trans (q0 j) lt).
by case: eqP => _ //; rewrite addr_ge0.
Qed.

Theorem gap_test_optimal_add_remove : competitor (@add_remove I) -> forall q, exists_data q ->
  M q (Some (top q k)) <= gap_test r delta 1 k q (Some (top q k)).
Proof.
case=> lawM cls priv q ex; rewrite /= eqxx.
apply: (@gap_test_optimal _ _ r delta 1 k r1 d0 d1 _ k0 kK exists_data (@add_remove I)) => //.
  exact: (@exists_shift 1).
move=> e i j x ij /andP[x0]; rewrite -[X in _ < X]add0r ltz_addr1 => x1.
have -> : x = 0 by apply/eqP; rewrite eq_le x1.
have dn : add (shift e i j 0) e.
  move=> a; rewrite /shift; case: eqP => _; rewrite ?addr0; last case: eqP => _; rewrite ?addr0.
  - by rewrite subrK lexx ler_subl_addr ler_addl.
  - by rewrite lexx ler_addl.
  - by rewrite lexx ler_addl.
by split; [right | left].
Qed.

Theorem gap_test_optimal_replace : competitor (@replace I) -> forall q, exists_data q ->
  M q (Some (top q k)) <= gap_test r delta 2 k q (Some (top q k)).
Proof.
case=> lawM cls priv q ex; rewrite /= eqxx.
apply: (@gap_test_optimal _ _ r delta 2 k r1 d0 d1 _ k0 kK exists_data (@replace I)) => //.
  exact: (@exists_shift 2).
move=> e i j x ij /andP[x0 x2]; have x1 : x <= 1 by rewrite -ltz_addr1.
have near : replace e (shift e i j x).
  move=> a; rewrite /shift; case: eqP => _; last case: eqP => _.
  - by rewrite addrAC subrr add0r normrN normr1.
  - by rewrite addrAC subrr add0r ger0_norm.
  - by rewrite subrr normr0.
by split=> // a; rewrite distrC.
Qed.

End TwoRelations.

(* The gap test is of the class itself: so the bound is attained. *)
Theorem gap_test_competes (R : realFieldType) (I : finType) (r delta : R) (c k : nat) (open : bool)
    (neighbors : (I -> int) -> (I -> int) -> Prop) :
  1 <= r -> 0 <= delta -> delta <= 1 -> (0 < c)%N -> (0 < k)%N -> (k < #|I|)%N ->
  (forall q q', neighbors q q' -> drift c q q') ->
  competitor r delta k open (gap_test r delta c k) neighbors.
Proof.
move=> r1 d0 d1 c0 k0 kK nbs; split=> [q|q A|q q' _ _ /nbs nb].
- exact: gap_test_law.
- rewrite /=; case: (eqVneq A (top q k)) => [->|_]; last by rewrite eqxx.
  move=> ne; split=> [|i j iS jS]; first by rewrite card_top // ltnW.
  rewrite -subr_gt0; apply: lt_le_trans (edge_le k0 kK iS jS); rewrite ltNge.
  apply: contra ne => le; suff /eqP-> : steps c k q == 0%N by [].
  by rewrite -leqn0 steps_le // mul0n.
- exact: gap_test_private.
Qed.
