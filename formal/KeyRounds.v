(* Rounds of noisy totals, and the keys that pass.

   Page: docs/proofs/keys-rounds.md. Noise takes every integer value: "rounded Gaussians are
   enough". Which noise it is enters by two hypotheses: that it covers a move of norm 1, and how what
   it covers composes. *)
From Privmax Require Import Prelude Definitions Groups NoisyCounts Projections.

Section Profiles.
Variable R : realFieldType.

Definition whole_law (O : eqType) (p : O -> R) : Prop := countable_law p /\ adds_up p.

(* f is a profile: at r, which stands for e^epsilon, it is a delta that is enough, both ways. *)
Definition within_profile (f : R -> R) (O : eqType) (p p' : O -> R) : Prop :=
  forall r, 0 <= r -> countably_close p p' r (f r) /\ countably_close p' p r (f r).

(* What has profile f, and then what has profile g whatever came before, have profile h together.
   Of Gaussians "an adaptive composition is dominated by one Gaussian with mu" (Dong, Roth & Su
   2022, Corollary 3.3): f, g and h are the profiles of one Gaussian with mu1, mu2 and the root of
   mu1^2 + mu2^2. *)
Definition composes (f g h : R -> R) : Prop :=
  forall (O1 O2 : eqType) (p p' : O1 -> R) (q q' : O1 -> O2 -> R),
  whole_law p -> whole_law p' -> (forall o, whole_law (q o)) -> (forall o, whole_law (q' o)) ->
  within_profile f p p' -> (forall o, within_profile g (q o) (q' o)) ->
  within_profile h (then_ p q) (then_ p' q').

(* Basic composition is one such rule: the profile of (epsilon, delta)-privacy, e = e^epsilon. *)
Definition basic (e delta : R) (r : R) : R := if e <= r then delta else 1.

Lemma basic_composes e1 e2 delta1 delta2 : 0 <= e1 -> 0 <= e2 -> 0 <= delta2 ->
  composes (basic e1 delta1) (basic e2 delta2) (basic (e1 * e2) (delta1 + delta2)).
Proof.
move=> e10 e20 d20 O1 O2 p p' q q' [lp _] [lp' _] lq lq' w1 w2 r r0; rewrite /basic.
have law (o : O1) : countable_law (q o) by case: (lq o).
have law' (o : O1) : countable_law (q' o) by case: (lq' o).
case: ifP => [le|_].
  have [a1 b1] := w1 e1 e10; rewrite /basic lexx in a1 b1.
  have cl2 o : countably_close (q o) (q' o) e2 delta2 /\ countably_close (q' o) (q o) e2 delta2.
    by have [a2 b2] := w2 o e2 e20; rewrite /basic lexx in a2 b2.
  have up (P P' : O1 * O2 -> R) : (forall x, 0 <= P' x) ->
      countably_close P P' (e1 * e2) (delta1 + delta2) ->
      countably_close P P' r (delta1 + delta2).
    move=> P'0 cl s us; apply: (le_trans (cl s us)); rewrite ler_add2r.
    by apply: ler_wpmul2r => //; apply: sumr_ge0.
  have [t0 _] := then_law lp law; have [t'0 _] := then_law lp' law'.
  by split; apply: up => //; apply: then_close => // o; case: (cl2 o).
have small (P P' : O1 * O2 -> R) : countable_law P -> countable_law P' ->
    countably_close P P' r 1.
  move=> [_ P1] [P'0 _] s us; apply: (le_trans (P1 s us)).
  by rewrite ler_addr mulr_ge0 // sumr_ge0.
by split; apply: small; apply: then_law.
Qed.

Lemma shift_close (V : zmodType) (p p' : V -> R) x r delta : countably_close p p' r delta ->
  countably_close (fun y => p (y - x)) (fun y => p' (y - x)) r delta.
Proof.
move=> cl s us; have := cl [seq y - x | y <- s]; rewrite !big_map map_inj_uniq.
  by apply.
by move=> a b /addIr.
Qed.

(* A history, the newest first: one draw after what came before. *)
Section After.
Variables (V : eqType) (q1 : seq V -> R) (q2 : seq V -> V -> R).
Definition after (ys : seq V) : R := if ys is y :: past then then_ q1 q2 (past, y) else 0.

Let cut (ys : seq V) : option (seq V * V) := if ys is y :: past then Some (past, y) else None.
Let glue (x : seq V * V) : seq V := x.2 :: x.1.
Let cut_glue : pcancel glue cut. Proof. by case. Qed.
Let glue_cut : ocancel cut glue. Proof. by case. Qed.

Lemma after_sum s : uniq s -> exists2 t, uniq t /\ (forall x, (x \in t) = (x.2 :: x.1 \in s)) &
  \sum_(ys <- s) after ys = \sum_(x <- t) then_ q1 q2 x.
Proof.
move=> us; exists (pmap cut s).
  split=> [|x]; first exact: pmap_uniq glue_cut _ us.
  exact: can2_mem_pmap glue_cut cut_glue _ _.
elim: s {us} => [|[|y past] s IH] /=; first by rewrite !big_nil.
  by rewrite big_cons IH add0r.
by rewrite !big_cons IH.
Qed.

Lemma is_Pr_after (S : seq V -> Prop) v :
  is_Pr (then_ q1 q2) (fun x => S (x.2 :: x.1)) v -> is_Pr after S v.
Proof.
move=> [below near]; split=> [s us sS|e /near[s [us sS] lt]].
  have [t [ut ts] ->] := after_sum us; apply: below => // x.
  by rewrite ts => /sS.
exists [seq glue x | x <- s]; last first.
  by rewrite big_map (eq_bigr (then_ q1 q2)) // => -[].
split; first by rewrite map_inj_uniq //; apply: pcan_inj cut_glue.
by move=> ys /mapP[x /sS Sx ->].
Qed.

Lemma after_law : whole_law q1 -> (forall o, whole_law (q2 o)) -> whole_law after.
Proof.
move=> [l1 a1] l2; have law (o : seq V) : countable_law (q2 o) by case: (l2 o).
have [t0 t1] := then_law l1 law; split; first split=> [[|y past]|s us] //.
- exact: t0 (past, y).
- by have [t [ut _] ->] := after_sum us; apply: t1.
apply: is_Pr_after; have [q10 _] := l1.
by apply: then_adds_up => // o; case: (l2 o).
Qed.

End After.

Lemma after_within (V : eqType) f g h (q1 q1' : seq V -> R) (q2 q2' : seq V -> V -> R) :
  composes f g h -> whole_law q1 -> whole_law q1' -> (forall o, whole_law (q2 o)) ->
  (forall o, whole_law (q2' o)) -> within_profile f q1 q1' ->
  (forall o, within_profile g (q2 o) (q2' o)) ->
  within_profile h (after q1 q2) (after q1' q2').
Proof.
move=> comp l1 l1' l2 l2' w1 w2 r r0.
have [cl cl'] := comp _ _ _ _ _ _ l1 l1' l2 l2' w1 w2 r r0.
have cut_sum (a a' : seq V -> R) (b b' : seq V -> V -> R) s : uniq s -> exists2 t, uniq t &
    \sum_(ys <- s) after a b ys = \sum_(x <- t) then_ a b x /\
    \sum_(ys <- s) after a' b' ys = \sum_(x <- t) then_ a' b' x.
  move=> us; have [t [ut ts] ->] := after_sum a b us; have [t' [ut' ts'] ->] := after_sum a' b' us.
  exists t => //; split=> //; apply: perm_big; apply: uniq_perm => // x.
  by rewrite ts ts'.
split=> s us.
  by have [t ut [-> ->]] := cut_sum q1 q1' q2 q2' s us; apply: cl.
by have [t ut [-> ->]] := cut_sum q1 q1' q2 q2' s us; apply: cl'.
Qed.

Lemma after_projects (V : eqType) (phi : V -> V) (q1 p1 : seq V -> R) (q2 p2 : seq V -> V -> R) :
  (forall o, 0 <= q1 o) -> (forall o y, 0 <= p2 o y) -> projects (map phi) q1 p1 ->
  (forall o, projects phi (q2 o) (p2 (map phi o))) ->
  projects (map phi) (after q1 q2) (after p1 p2).
Proof.
move=> q10 p20 pr1 pr2 [|z past].
  split=> [s us sz|e e0]; last by exists [::] => //; rewrite big_nil sub0r oppr_lt0.
  rewrite big_seq big1 // => ys /sz; by case: ys.
apply: is_Pr_after; apply: is_Pr_ext (then_projects q10 p20 pr1 pr2 (past, z)) => -[a b] /=.
by split=> [[-> ->]|[-> ->]].
Qed.

Lemma union_bound (I : finType) (O : eqType) (A : pred I) (B : I -> pred O) (f : O -> R) s :
  (forall y, 0 <= f y) -> {in s, forall y, exists2 i, A i & B i y} ->
  \sum_(y <- s) f y <= \sum_(i | A i) \sum_(y <- s | B i y) f y.
Proof.
move=> f0 some; under [X in _ <= X]eq_bigr do rewrite big_mkcond.
rewrite exchange_big /= !big_seq; apply: ler_sum => y /some[i Ai Bi].
rewrite (bigD1 i) //= Bi ler_addl; apply: sumr_ge0 => i' _.
by case: ifP.
Qed.

(* Two laws are close, and what is released is F under the one and F' under the other: but for what
   is rare these are the same. *)
Lemma close_but_rare (O : eqType) (A : eqType) (F F' : O -> A) (T : A -> Prop) (q q' : O -> R)
    r f b a a' : 0 <= r -> countably_close q q' r f ->
  is_Pr q (fun y => T (F y)) a -> is_Pr q' (fun y => T (F' y)) a' ->
  (forall s, uniq s -> {in s, forall y, F y != F' y} -> \sum_(y <- s) q y <= b) ->
  a <= r * a' + (f + b).
Proof.
move=> r0 cl [_ near] [below _] rare; rewrite leNgt; apply/negP => lt.
have pos : 0 < a - (r * a' + (f + b)) by rewrite subr_gt0.
have [s [us sT]] := near _ pos; rewrite subKr ltNge => /negP; apply.
rewrite (bigID (fun y => F y == F' y)) /= addrA; apply: ler_add; last first.
  rewrite -big_filter; apply: rare; first exact: filter_uniq.
  by move=> y; rewrite mem_filter => /andP[].
rewrite -big_filter; apply: (le_trans (cl _ (filter_uniq _ us))); rewrite ler_add2r.
apply: ler_wpmul2l => //; apply: below; first exact: filter_uniq.
by move=> y; rewrite mem_filter => /andP[/eqP <- /sT].
Qed.

End Profiles.

Section Rounds.
(* Individuals, keys, and the answers of questions. An individual that is not in the data has no
   rows; each of its rows names a key. *)
Variables (R : realFieldType) (U K J : finType).
Notation data := {ffun U -> seq K}.
Notation values := {ffun K + J -> int}.
Notation history := (seq values).

(* Round j is a look at keys, or a question. *)
Variables (looks : nat -> bool) (rho : nat -> int) (p : nat -> int -> R).

(* What an individual with a set of keys gives to its keys or to the answers in round j: "a function
   of K_u, of the hashes of its own pairs, and of what earlier rounds made public of those keys and
   of answers". *)
Variable gives : nat -> U -> {set K} -> history -> values.

Definition keys_of (d : data) u : {set K} := [set i in d u].
Definition listed (d : data) : {set K} := \bigcup_u keys_of d u.
Definition shown (S : {set K}) : {set K + J} := [set c | if c is inl i then i \in S else true].
Definition given j (d : data) (past : history) u : values :=
  gives j u (keys_of d u) (map (mask (shown (keys_of d u))) past).
Definition totals j d past : values := \sum_u given j d past u.

(* "A key is alive if its value reached no earlier threshold, which is said by values alone." *)
Fixpoint alive (j : nat) (past : history) (i : K) : bool :=
  match j, past with
  | j.+1, y :: past => alive j past i && (looks j ==> (y (inl i) < rho j))
  | _, _ => true
  end.

(* "Noise for every alive key that someone has, also with a total of 0": P are the keys that there
   are. What gets no noise has the value 0. *)
Definition drawn (P : {set K}) j past : {set K + J} :=
  [set c | match c with inl i => [&& looks j, i \in P & alive j past i] | inr _ => ~~ looks j end].
Definition round_law P d j past : values -> R :=
  noisy (noise_on (drawn P j past) (p j)) (mask (drawn P j past) (totals j d past)).
Fixpoint transcript P d (j : nat) : history -> R :=
  if j is j.+1 then after (transcript P d j) (round_law P d j) else fun ys => (ys == [::])%:R.

(* "A key is released if y_j(i) >= rho_j and h_j(i) > 0." *)
Definition passing d j past (y : values) : {set K} :=
  [set i | [&& looks j, alive j past i, rho j <= y (inl i) & 0 < totals j d past (inl i)]].
Fixpoint released_keys d (j : nat) (ys : history) : {set K} :=
  match j, ys with
  | j.+1, y :: past => released_keys d j past :|: passing d j past y
  | _, _ => set0
  end.

(* "Released is only the set of keys" after n rounds. *)
Definition key_rounds_private (n : nat) (r delta : R) : Prop :=
  forall d d' : data, one_more d d' -> forall (T : {set K} -> Prop) v v',
  is_Pr (transcript (listed d) d n) (fun ys => T (released_keys d n ys)) v ->
  is_Pr (transcript (listed d') d' n) (fun ys => T (released_keys d' n ys)) v' ->
  v <= r * v' + delta.

Hypothesis noise_law : forall j, whole_law (p j).

(* What any individual gives: to its own keys alone, and nothing if it is not in the data. *)
Hypotheses (own : forall j u (S : {set K}) past i, i \notin S -> gives j u S past (inl i) = 0)
  (not_negative : forall j u S past i, 0 <= gives j u S past (inl i))
  (absent : forall j u past, gives j u set0 past = 0).

Let noise0 j : countable_law (p j). Proof. by case: (noise_law j). Qed.
Let noise1 j : adds_up (p j). Proof. by case: (noise_law j). Qed.

(* The law of a round as that of independent numbers. *)
Let number P d j past (c : K + J) (z : int) : R :=
  (if c \in drawn P j past then p j else @no_noise R)
    (z - (if c \in drawn P j past then totals j d past c else 0)).

Let round_independent P d j past y :
  round_law P d j past y = independent (number P d j past) y.
Proof.
by rewrite /round_law /noisy /noise_on /independent; apply: eq_bigr => c _; rewrite !ffunE.
Qed.

Let number_law P d j past c : whole_law (number P d j past c).
Proof.
have shift (q : int -> R) x : whole_law q -> whole_law (fun z => q (z - x)).
  case=> -[q0 q1] all; split; last exact: shift_adds_up.
  split=> // s us; rewrite -(big_map (fun z => z - x) xpredT q); apply: q1.
  by rewrite map_inj_uniq // => a b /addIr.
rewrite /number; case: ifP => _; apply: shift => //.
by split; [apply: no_noise_law | apply: no_noise_adds_up].
Qed.

Let round_whole P d j past : whole_law (round_law P d j past).
Proof.
split; first by apply: noisy_law; apply: noise_on_law.
by apply: shift_adds_up; apply: noise_on_adds_up.
Qed.

Let transcript_whole P d j : whole_law (transcript P d j).
Proof.
elim: j => [|j IH] /=; last exact: after_law.
have one s : uniq s -> \sum_(ys <- s) ((ys == [::] :> history)%:R : R) <= 1.
  move=> us; have [in0|out] := boolP ([::] \in s); last first.
    by rewrite big_seq big1 ?ler01 // => ys yss; case: eqP yss => // ->; rewrite (negPf out).
  by rewrite (bigD1_seq [::]) //= big1 ?addr0 // => ys /negPf ->.
split; first by split=> // ys; apply: ler0n.
split=> [s us _|e e0]; first exact: one.
by exists [:: [::]] => //; rewrite big_seq1 eqxx ltr_subl_addr ltr_addl.
Qed.

(* Keys that no one has: "let D draw, and use for nothing, the values that they would have". *)
Section Unlisted.
Variables (d : data) (P P' : {set K}).
Hypotheses (all : listed d \subset P) (more : P \subset P').
Let see := map (mask (shown P)).

Let keys_sub u : keys_of d u \subset P.
Proof. by apply: subset_trans all; apply: bigcup_sup. Qed.

Let see_own u past : map (mask (shown (keys_of d u))) (see past) =
  map (mask (shown (keys_of d u))) past.
Proof.
rewrite -map_comp; apply: eq_map => y /=; apply/ffunP => -[i|a]; rewrite !ffunE !inE //.
by case: ifP => // iu; rewrite (subsetP (keys_sub u) i) ?inE.
Qed.

Let totals_see j past : totals j d (see past) = totals j d past.
Proof. by apply: eq_bigr => u _; rewrite /given see_own. Qed.

Let alive_see j past i : i \in P -> alive j (see past) i = alive j past i.
Proof.
move=> iP; elim: j past => [|j IH] [|y past] //=.
by rewrite IH ffunE inE iP.
Qed.

Let released_see j ys : released_keys d j (see ys) = released_keys d j ys.
Proof.
elim: j ys => [|j IH] [|y past] //=; rewrite IH; congr (_ :|: _).
apply/setP => i; rewrite !inE totals_see; case: (boolP (i \in P)) => iP.
  by rewrite alive_see // !ffunE inE iP.
have -> : totals j d past (inl i) = 0.
  rewrite /totals sum_ffunE big1 // => u _; apply: own; apply: contra iP.
  by apply/subsetP.
by rewrite ltxx !andbF.
Qed.

Let round_see j past :
  projects (mask (shown P)) (round_law P' d j past) (round_law P d j (see past)).
Proof.
have laws c : countable_law (number P' d j past c) by case: (number_law P' d j past c).
have sums c : adds_up (number P' d j past c) by case: (number_law P' d j past c).
move=> z; have := independent_projects (shown P) laws sums z.
rewrite round_independent; set v := independent _ _; set w := independent _ _.
have -> : w = v.
  apply: eq_bigr => -[i|a] _; rewrite /number !inE ?totals_see //.
  case: (boolP (i \in P)) => iP; last by rewrite andbF subr0.
  by rewrite (subsetP more) // alive_see.
move=> [below near]; split=> [s us sz|e /near[s us_sz lt]].
  by rewrite (eq_bigr _ (fun y _ => round_independent P' d j past y)); apply: below.
by exists s; rewrite // (eq_bigr _ (fun y _ => round_independent P' d j past y)).
Qed.

Let transcript_see j : projects see (transcript P' d j) (transcript P d j).
Proof.
elim: j => [|j IH] /=.
  have [l0 a0] := transcript_whole P d 0.
  move=> [|z past]; last first.
    split=> [s us sz|e e0]; last by exists [::] => //; rewrite big_nil sub0r oppr_lt0.
    by rewrite big_seq big1 // => -[|y ys] // /sz.
  split=> [s us sz|e e0]; first by case: l0 => _; apply.
  exists [:: [::]]; first by split=> // ys; rewrite inE => /eqP ->.
  by rewrite big_seq1 ltr_subl_addr ltr_addl.
apply: after_projects => //; first by case: (transcript_whole P' d j) => -[].
by move=> o y; case: (round_whole P d j o) => -[].
Qed.

Lemma unlisted_keys n (T : {set K} -> Prop) v :
  is_Pr (transcript P d n) (fun ys => T (released_keys d n ys)) v ->
  is_Pr (transcript P' d n) (fun ys => T (released_keys d n ys)) v.
Proof.
move=> /(is_Pr_project (transcript_see n)); apply: is_Pr_ext => ys.
by rewrite released_see.
Qed.

End Unlisted.

(* The rule that decides how much an individual gives: "a vector of norm at most 1", which is one
   in whole steps; profiles of the noise of a round, and of all rounds so far. *)
Variables (one : nat) (profile total : nat -> R -> R) (n : nat).
Hypotheses (norm : forall j u S past, (\sum_c `|gives j u S past c| ^ 2 <= one ^ 2)%N)
  (covers : forall j (A : {set K + J}) (u : values), (forall c, c \notin A -> u c = 0) ->
    (\sum_c `|u c| ^ 2 <= one ^ 2)%N ->
    forall r, 0 <= r ->
      countably_close (noise_on A (p j)) (noisy (noise_on A (p j)) u) r (profile j r))
  (total0 : forall r, 0 <= r -> Num.max 0 (1 - r) <= total 0 r)
  (total_next : forall j, (j < n)%N -> composes (total j) (profile j) (total j.+1)).

(* (1): "the sum of P(w_i + N >= rho_j) is at most delta_j", over what an individual may give;
   tail j x is at least P(N >= x). *)
Variables (tail : nat -> int -> R) (delta : nat -> R).
Hypotheses (tails : forall j x s, uniq s -> {in s, forall z, x <= z} ->
    \sum_(z <- s) p j z <= tail j x)
  (thresholds : forall j u S past,
    \sum_(i | looks j && (0 < gives j u S past (inl i))) tail j (rho j - gives j u S past (inl i))
      <= delta j).

Section OneMore.
Variables (d d' : data) (v : U).
Hypotheses (none : d v = [::]) (same : forall u, u != v -> d u = d' u).
Let P := listed d'.

Let keys0 : keys_of d v = set0.
Proof. by apply/setP => i; rewrite !inE none. Qed.

Let keys_same u : u != v -> keys_of d u = keys_of d' u.
Proof. by move=> ne; rewrite /keys_of same. Qed.

Let fewer : listed d \subset P.
Proof.
apply/bigcupsP => u _; have [->|ne] := eqVneq u v; first by rewrite keys0 sub0set.
by rewrite keys_same //; apply: bigcup_sup.
Qed.

(* "The means of round j differ by what v gives." *)
Let move_ j past : totals j d' past = totals j d past + given j d' past v.
Proof.
have g0 : given j d past v = 0 by rewrite /given keys0 absent.
rewrite /totals (bigD1 v) //= [in RHS](bigD1 v) //= g0 add0r addrC; congr (_ + _).
by apply: eq_bigr => u ne; rewrite /given keys_same.
Qed.

Let transcript_close j : (j <= n)%N ->
  within_profile (total j) (transcript P d j) (transcript P d' j).
Proof.
elim: j => [|j IH] jn /=.
  move=> r r0; have le s : uniq s -> \sum_(ys <- s) ((ys == [::] :> history)%:R : R) <=
      r * (\sum_(ys <- s) (ys == [::])%:R) + total 0 r.
    move=> us; have := total0 r0; rewrite le_maxl => /andP[t0 t1].
    set x := \sum_(_ <- _) _; have x0 : 0 <= x by apply: sumr_ge0 => ys _; apply: ler0n.
    have x1 : x <= 1 by have [_ le1] := (transcript_whole P d 0).1; apply: le1.
    rewrite -ler_subl_addl -{1}[x]mul1r -mulrBl.
    have [r1|r1] := lerP 1 r.
      by apply: le_trans t0; rewrite mulr_le0_ge0 // subr_le0.
    by apply: le_trans t1; rewrite ler_pimulr // subr_ge0 ltW.
  by split=> s us; apply: le.
apply: (after_within (total_next jn)) => //; first exact: IH (ltnW jn).
move=> past; set A := drawn P j past; set m := mask A (totals j d past).
set u := mask A (given j d' past v).
have -> : round_law P d' j past = noisy (noise_on A (p j)) (m + u).
  rewrite /round_law -/A move_; congr (noisy _ _); apply/ffunP => c; rewrite !ffunE.
  by case: ifP; rewrite ?addr0.
have -> : round_law P d j past = noisy (noise_on A (p j)) m by [].
have out c : c \notin A -> u c = 0 by move=> cA; rewrite ffunE (negPf cA).
have small : (\sum_c `|u c| ^ 2 <= one ^ 2)%N.
  apply: leq_trans (norm j v (keys_of d' v) (map (mask (shown (keys_of d' v))) past)).
  by apply: leq_sum => c _; rewrite ffunE; case: ifP.
have out' c : c \notin A -> (- u) c = 0 by move=> cA; rewrite ffunE out ?oppr0.
have small' : (\sum_c `|(- u) c| ^ 2 <= one ^ 2)%N.
  by rewrite (eq_bigr (fun c => `|u c| ^ 2)%N) // => c _; rewrite ffunE abszN.
move=> r r0; have c1 := covers j out small r0; have c2 := covers j out' small' r0.
set N := noise_on A (p j) in c1 c2 *.
split=> s us; [have := shift_close m c1 us | have := shift_close (m + u) c2 us];
  rewrite /noisy => le; apply: (le_trans le); rewrite ler_add2r; apply: ler_wpmul2l => //;
  apply: ler_sum => y _; rewrite le_eqVlt; apply/orP; left; apply/eqP; congr (N _).
  by rewrite opprD addrA.
by rewrite opprK opprD addrA subrK.
Qed.

(* "Let E be the event that there are none of these": for no j a key of V_j = {i : w_v(i) > 0 =
   h_j^D(i)} that is alive reaches rho_j. *)
Let own_key j past i :=
  [&& looks j, alive j past i, 0 < given j d' past v (inl i) & totals j d past (inl i) == 0].

Let same_passing j past (y : values) : ~~ [exists i, own_key j past i && (rho j <= y (inl i))] ->
  passing d j past y = passing d' j past y.
Proof.
move=> /existsPn safe; apply/setP => i; rewrite !inE; have := safe i; rewrite /own_key.
case: (looks j) => //=; case: (alive j past i) => //=; case: (rho j <= y (inl i)) => //=.
have t0 : 0 <= totals j d past (inl i).
  by rewrite /totals sum_ffunE sumr_ge0 // => u _; apply: not_negative.
have g0 : 0 <= given j d' past v (inl i) by apply: not_negative.
rewrite move_ [in RHS]ffunE andbT; move: t0; rewrite le_eqVlt => /orP[/eqP <-|t0].
  by rewrite eqxx andbT add0r ltxx => /negPf ->.
by rewrite t0 ltr_paddr.
Qed.

Let round_rare e j past s : e = d \/ e = d' -> uniq s ->
  {in s, forall y : values, [exists i, own_key j past i && (rho j <= y (inl i))]} ->
  \sum_(y <- s) round_law P e j past y <= delta j.
Proof.
move=> ed us bad; have [[q0 _] _] := round_whole P e j past.
pose reaches i (y : values) := rho j <= y (inl i).
have some : {in s, forall y, exists2 i, own_key j past i & reaches i y}.
  by move=> y /bad /existsP[i /andP[]]; exists i.
apply: (le_trans (union_bound q0 some)).
have tail0 x : 0 <= tail j x by have := @tails j x [::] isT; rewrite big_nil; apply.
pose w i := given j d' past v (inl i).
apply: (@le_trans _ _ (\sum_(i | own_key j past i) tail j (rho j - w i))); last first.
  apply: (le_trans _ (thresholds j v (keys_of d' v) (map (mask (shown (keys_of d' v))) past))).
  rewrite big_mkcond [X in _ <= X]big_mkcond /=; apply: ler_sum => i _; rewrite -/(given _ _ _ _).
  rewrite /own_key -/(w i).
  by case: (looks j); case: (alive _ _ _); case: (0 < w i) => //=; case: ifP.
apply: ler_sum => i /and4P[look live wi /eqP ti]; rewrite -big_filter.
rewrite (eq_bigr _ (fun y _ => round_independent P e j past y)).
have laws c : countable_law (number P e j past c) by case: (number_law P e j past c).
apply: (independent_one laws (j := inl i) (rho := rho j)); last first.
- by move=> y; rewrite mem_filter => /andP[].
- exact: filter_uniq.
have in_drawn : inl i \in drawn P j past.
  rewrite inE look live andbT /=; apply/bigcupP; exists v => //; apply: contraTT wi => iv.
  by rewrite /given own ?ltxx.
move=> V uV reach; rewrite /number in_drawn.
rewrite -(big_map (fun z => z - totals j e past (inl i)) xpredT (p j)).
apply: tails.
  by rewrite map_inj_uniq // => a b /addIr.
move=> z /mapP[z' /reach z'r ->]; apply: ler_sub => //.
case: ed => ->; rewrite ?ti ?move_ ?ffunE ?ti ?add0r //.
exact: ltW.
Qed.

Let rare e j s : e = d \/ e = d' -> uniq s ->
  {in s, forall ys, released_keys d j ys != released_keys d' j ys} ->
  \sum_(ys <- s) transcript P e j ys <= \sum_(i < j) delta i.
Proof.
move=> ed; elim: j s => [|j IH] s us bad.
  by rewrite big_ord0 big_seq big1 // => ys /bad; rewrite eqxx.
have [t [ut ts] ->] := after_sum (transcript P e j) (round_law P e j) us.
rewrite big_ord_recr /=.
have [law1 _] := transcript_whole P e j.
have law2 past : countable_law (round_law P e j past) by case: (round_whole P e j past).
have delta0 : 0 <= delta j.
  apply: le_trans (thresholds j v set0 [::]); apply: sumr_ge0 => i _.
  by have := @tails j (rho j - gives j v set0 [::] (inl i)) [::] isT; rewrite big_nil; apply.
pose B1 past := released_keys d j past != released_keys d' j past.
pose B2 past (y : values) := [exists i, own_key j past i && (rho j <= y (inl i))].
apply: (@then_event _ _ _ _ _ B1 B2 _ _ _ law1 law2 delta0 IH) => //.
  by move=> past s' us' bad'; apply: (round_rare ed).
move=> [past y]; rewrite ts => /bad /=.
apply: contraR; rewrite negb_or negbK => /andP[/eqP -> safe].
by rewrite same_passing.
Qed.

Lemma one_more_close r (T : {set K} -> Prop) a a' : 0 <= r ->
  is_Pr (transcript (listed d) d n) (fun ys => T (released_keys d n ys)) a ->
  is_Pr (transcript P d' n) (fun ys => T (released_keys d' n ys)) a' ->
  a <= r * a' + (total n r + \sum_(j < n) delta j) /\
  a' <= r * a + (total n r + \sum_(j < n) delta j).
Proof.
move=> r0 /(unlisted_keys (subxx _) fewer) Pa Pa'; have [c1 c2] := transcript_close (leqnn n) r0.
split; first by apply: close_but_rare c1 Pa Pa' _ => // s; apply: (rare (or_introl erefl)).
apply: close_but_rare c2 Pa' Pa _ => // s us bad; apply: (rare (or_intror erefl) us) => ys yss.
by rewrite eq_sym bad.
Qed.

End OneMore.

Theorem key_rounds_by_profiles r : 0 <= r ->
  key_rounds_private n r (total n r + \sum_(j < n) delta j).
Proof.
move=> r0 d d' [v [none same]] T a a' Pa Pa'; case: none => none.
  by have [] := one_more_close none same r0 Pa Pa'.
have same' u : u != v -> d' u = d u by move=> ne; rewrite same.
by have [] := one_more_close none same' r0 Pa' Pa.
Qed.

End Rounds.

(* What is public of the rounds: n of them, at a norm of one; and what of the individuals' rule and
   of the thresholds. *)
Section Statements.
Variables (R : realFieldType) (U K J : finType) (n one : nat).
Variables (looks : nat -> bool) (rho : nat -> int) (p : nat -> int -> R).
Variable gives : nat -> U -> {set K} -> seq {ffun K + J -> int} -> {ffun K + J -> int}.
Variables (tail : nat -> int -> R) (delta : nat -> R).
Hypothesis noise_law : forall j, whole_law (p j).
Hypotheses (own : forall j u (S : {set K}) past i, i \notin S -> gives j u S past (inl i) = 0)
  (not_negative : forall j u S past i, 0 <= gives j u S past (inl i))
  (absent : forall j u past, gives j u set0 past = 0)
  (norm : forall j u S past, (\sum_c `|gives j u S past c| ^ 2 <= one ^ 2)%N).
Hypotheses (tails : forall j x s, uniq s -> {in s, forall z, x <= z} ->
    \sum_(z <- s) p j z <= tail j x)
  (thresholds : forall j u S past,
    \sum_(i | looks j && (0 < gives j u S past (inl i))) tail j (rho j - gives j u S past (inl i))
      <= delta j).

(* Noise of round j on the numbers of A covers every move of norm one at most. *)
Definition covers_norm j (f : R -> R) : Prop :=
  forall (A : {set K + J}) (u : {ffun K + J -> int}), (forall c, c \notin A -> u c = 0) ->
  (\sum_c `|u c| ^ 2 <= one ^ 2)%N -> forall r, 0 <= r ->
  countably_close (noise_on A (p j)) (noisy (noise_on A (p j)) u) r (f r).

(* "Let mu^2 be the sum of 1/sigma_j^2": gaussian v r is the profile of one Gaussian with mu^2 = v,
   at r = e^epsilon, and inverse j is 1/sigma_j^2. "The set of released keys is (epsilon,
   delta_G(epsilon, mu) + delta_2)-private." *)
Theorem key_rounds_gaussian (gaussian : R -> R -> R) (inverse : nat -> R) r :
  (forall v w, 0 <= v -> 0 <= w -> composes (gaussian v) (gaussian w) (gaussian (v + w))) ->
  (forall r, 0 <= r -> Num.max 0 (1 - r) <= gaussian 0 r) ->
  (forall j, 0 <= inverse j) -> (forall j, covers_norm j (gaussian (inverse j))) -> 0 <= r ->
  key_rounds_private looks rho p gives n r
    (gaussian (\sum_(j < n) inverse j) r + \sum_(j < n) delta j).
Proof.
move=> comp zero v0 covers r0.
apply: (@key_rounds_by_profiles _ _ _ _ _ _ _ _ noise_law own not_negative absent one
  (fun j => gaussian (inverse j)) (fun j => gaussian (\sum_(i < j) inverse i)) n norm _ _ _ tail
  delta tails thresholds r r0) => [j|r' r'0|j _].
- exact: covers.
- by rewrite big_ord0; apply: zero.
- by rewrite big_ord_recr /=; apply: comp => //; apply: sumr_ge0 => i _.
Qed.

(* The same by basic composition, for any noise: round j has e^epsilon_j and a delta of its own. *)
Theorem key_rounds_basic (e loss : nat -> R) :
  (forall j, 1 <= e j) -> (forall j, 0 <= loss j) ->
  (forall j, covers_norm j (basic (e j) (loss j))) ->
  key_rounds_private looks rho p gives n (\prod_(j < n) e j)
    (\sum_(j < n) loss j + \sum_(j < n) delta j).
Proof.
move=> e1 l0 covers; have e0 j : 0 <= e j by apply: le_trans (e1 j).
pose total j := basic (\prod_(i < j) e i) (\sum_(i < j) loss i).
have -> : \sum_(j < n) loss j = total n (\prod_(j < n) e j) by rewrite /total /basic lexx.
apply: (@key_rounds_by_profiles _ _ _ _ _ _ _ _ noise_law own not_negative absent one
  (fun j => basic (e j) (loss j)) total n norm _ _ _ tail delta tails thresholds) => [j|r r0|j _|].
- exact: covers.
- rewrite /total /basic !big_ord0 le_maxl; case: ifP => [r1|_].
    by rewrite lexx subr_le0.
  by rewrite ler01 ler_subl_addr ler_addl.
- rewrite /total !big_ord_recr /=; apply: basic_composes => //.
  exact: prodr_ge0.
- exact: prodr_ge0.
Qed.

End Statements.
