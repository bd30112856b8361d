(* Prints the values of Laws.v; it follows the extracted definitions in one file. *)

let integer = function Posz n -> n | Negz n -> -n - 1

let print name scores values =
  let fraction (above, below) = Printf.sprintf "%d/%d" (integer above) (integer below) in
  Printf.printf "%s %s: %s\n" name
    (String.concat " " (List.map string_of_int scores))
    (String.concat " " (List.map fraction values))

let range = [0; 1; 2; 3]

let () =
  let each f = List.iter f range in
  each (fun a -> each (fun b -> each (fun c -> each (fun d ->
    let scores = [a; b; c; d] in
    print "exponential" scores (value_exponential scores);
    print "restricted" scores (value_restricted scores);
    print "limited_domain" scores (value_limited_domain scores);
    print "limited_domain_clipped" scores (value_limited_domain_clipped scores);
    print "nested_margin" scores (value_nested_margin scores);
    print "nested_margin_growth" scores (value_nested_margin_growth scores);
    print "gap_test" scores (value_gap_test scores);
    print "best_set" scores (value_best_set scores);
    if d = 0 then begin
      print "set_stage" [a; b; c] (value_set_stage scores);
      print "everybody" [a; b; c] (value_everybody scores)
    end))));
  List.iter (fun k -> print "laplace" [k] (value_laplace k)) (range @ [4; 5; 6; 7])
